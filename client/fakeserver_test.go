package client

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// verdict is what a hook wants to happen to a request.
type verdict int

const (
	serve    verdict = iota // as usual
	swallow                 // do it, but do not answer, and cut the connection
	cut                     // cut the connection without doing it
	noAnswer                // neither do nor answer it; the connection stays
)

// fakeServer is an ensemble of one, in memory, over net.Pipe. It keeps sessions
// and znodes as ZooKeeper does, as far as the tests need it, and can be made to
// misbehave.
type fakeServer struct {
	t  testing.TB
	wg sync.WaitGroup

	mu       sync.Mutex // protects the fields below
	zxid     znode.Zxid
	nodes    map[string]*fakeNode
	sessions map[znode.SessionID]*fakeSession
	conns    map[*fakeConn]struct{}
	nextID   znode.SessionID
	down     bool // refuses connections
	silent   bool // accepts connections and answers nothing
	oldMulti bool // answers a create2 in a multi as a create: ZooKeeper 3.8
	closed   []znode.SessionID
	dials    []string
	// hook sees every request before it is served, with mu held.
	hook func(c *fakeConn, h wire.RequestHeader, body wire.Request) verdict
	// connectHook may replace the answer to a connect request.
	connectHook func(req *wire.ConnectRequest, resp *wire.ConnectResponse)
	connects    []wire.ConnectRequest
	requests    []wire.OpCode
	credentials map[string]bool // accepted by auth, nil for all
	noAddWatch  bool            // a server older than 3.6
}

type fakeNode struct {
	data     []byte
	stat     znode.Stat
	creates  int
	children map[string]bool
}

type fakeSession struct {
	password []byte
	expired  bool
}

type fakeConn struct {
	s       *fakeServer
	conn    net.Conn
	session znode.SessionID
	data    map[string]bool // one-shot
	child   map[string]bool // one-shot
	persist map[string]wire.AddWatchMode

	out  [][]byte // protected by s.mu
	wake chan struct{}
	gone chan struct{}
	once sync.Once
}

func newFakeServer(t testing.TB) *fakeServer {
	s := &fakeServer{
		t: t, nodes: map[string]*fakeNode{"/": newFakeNode()},
		sessions: map[znode.SessionID]*fakeSession{}, conns: map[*fakeConn]struct{}{},
		nextID: 0x1000, zxid: 100,
	}
	return s
}

func newFakeNode() *fakeNode { return &fakeNode{children: map[string]bool{}} }

var errRefused = errors.New("connection refused")

func (s *fakeServer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials = append(s.dials, address)
	if s.down {
		return nil, errRefused
	}
	ours, theirs := net.Pipe()
	s.acceptLocked(ours)
	return theirs, nil
}

// acceptLocked serves one connection.
func (s *fakeServer) acceptLocked(ours net.Conn) {
	c := &fakeConn{
		s: s, conn: ours, wake: make(chan struct{}, 1), gone: make(chan struct{}),
		data: map[string]bool{}, child: map[string]bool{},
		persist: map[string]wire.AddWatchMode{},
	}
	s.conns[c] = struct{}{}
	s.wg.Go(c.read)
	s.wg.Go(c.write)
}

// get reads a field of the server.
func get[T any](s *fakeServer, field *T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *field
}

func (s *fakeServer) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// stop cuts all connections and waits for the goroutines.
func (s *fakeServer) stop() {
	s.do(func() { s.down = true })
	s.cutAll()
	s.wg.Wait()
}

func (s *fakeServer) cutAll() {
	s.mu.Lock()
	var list []*fakeConn
	for c := range s.conns {
		list = append(list, c)
	}
	s.mu.Unlock()
	for _, c := range list {
		c.cut()
	}
}

// expire ends a session as ZooKeeper does: without a word to the client.
func (s *fakeServer) expire(id znode.SessionID) {
	s.do(func() {
		s.sessions[id].expired = true
		s.zxid++
		for path, n := range s.nodes {
			if n.stat.EphemeralOwner == id {
				s.removeLocked(path)
			}
		}
	})
	s.cutAll()
}

func (c *fakeConn) cut() {
	c.once.Do(func() { close(c.gone); c.conn.Close() })
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
}

func (c *fakeConn) write() {
	defer c.cut()
	for {
		select {
		case <-c.wake:
		case <-c.gone:
			return
		}
		c.s.mu.Lock()
		frames := c.out
		c.out = nil
		c.s.mu.Unlock()
		for _, f := range frames {
			if f == nil { // the end
				return
			}
			if _, err := c.conn.Write(f); err != nil {
				return
			}
		}
	}
}

// sendLocked queues a frame; nil cuts the connection when all before it is out.
func (c *fakeConn) sendLocked(frame []byte) {
	c.out = append(c.out, frame)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *fakeConn) read() {
	defer c.cut()
	frames := wire.NewFrameReader(c.conn, 1<<20)
	if payload, err := frames.Next(); err != nil || !c.connect(payload) {
		return
	}
	for {
		payload, err := frames.Next()
		if err != nil {
			return
		}
		h, body, err := wire.ParseRequest(payload)
		if err != nil {
			c.s.t.Errorf("client sent nonsense: %v", err)
			return
		}
		if !c.serve(h, body) {
			<-c.gone // what was answered before still goes out
			return
		}
	}
}

func (c *fakeConn) connect(payload []byte) bool {
	var req wire.ConnectRequest
	req.Decode(jute.NewReader(payload))
	req.Password = bytes.Clone(req.Password)
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connects = append(s.connects, req)
	if s.silent {
		return true
	}
	if req.LastZxidSeen > s.zxid {
		return false
	}
	resp := wire.ConnectResponse{
		TimeoutMillis: req.TimeoutMillis, SessionID: req.SessionID, HasReadOnly: true,
		Password: make([]byte, znode.PasswordSize),
	}
	old := s.sessions[req.SessionID]
	switch {
	case req.SessionID == 0:
		s.nextID++
		s.zxid++
		resp.SessionID = s.nextID
		resp.Password = bytes.Repeat([]byte{byte(s.nextID)}, znode.PasswordSize)
		s.sessions[s.nextID] = &fakeSession{password: resp.Password}
	case old == nil || old.expired || !bytes.Equal(old.password, req.Password):
		resp.TimeoutMillis, resp.SessionID = 0, 0
	default:
		resp.Password = old.password
	}
	if s.connectHook != nil {
		s.connectHook(&req, &resp)
	}
	c.session = resp.SessionID
	frame, mark := wire.BeginFrame(nil)
	frame = resp.Append(frame)
	wire.EndFrame(frame, mark)
	c.sendLocked(frame)
	if resp.TimeoutMillis == 0 {
		c.sendLocked(nil)
	}
	return true
}

func (c *fakeConn) serve(h wire.RequestHeader, body wire.Request) bool {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, h.Type)
	if s.silent {
		return true
	}
	what := serve
	if s.hook != nil {
		what = s.hook(c, h, body)
	}
	switch what {
	case cut:
		c.sendLocked(nil)
		return false
	case noAnswer:
		return true
	}
	resp, code := c.apply(h, body)
	if what == swallow {
		c.sendLocked(nil)
		return false
	}
	c.answerLocked(h.Xid, resp, code)
	if code == znode.ErrAuthFailed || code == znode.ErrUnimplemented ||
		h.Type == wire.OpCloseSession {
		c.sendLocked(nil)
	}
	return true
}

func (c *fakeConn) answerLocked(xid wire.Xid, resp wire.Response, code znode.Error) {
	c.sendLocked(wire.AppendReply(nil,
		wire.ReplyHeader{Xid: xid, Zxid: c.s.zxid, Err: code}, resp))
}

func (c *fakeConn) eventLocked(t znode.EventType, path string) {
	e := &wire.WatcherEvent{Type: t, State: wire.StateSyncConnected, Path: path}
	c.sendLocked(wire.AppendReply(nil,
		wire.ReplyHeader{Xid: wire.XidNotification, Zxid: c.s.zxid}, e))
}

// fireLocked tells every connection once, as ZooKeeper's two tables do.
func (s *fakeServer) fireLocked(t znode.EventType, path string) {
	for c := range s.conns {
		hit := false
		if t != znode.EventChildrenChanged && c.data[path] {
			delete(c.data, path)
			hit = true
		}
		if (t == znode.EventChildrenChanged || t == znode.EventDeleted) && c.child[path] {
			delete(c.child, path)
			hit = true
		}
		for p, mode := range c.persist {
			below := p == path || p == "/" || strings.HasPrefix(path, p+"/")
			hit = hit || mode == wire.AddWatchPersistent && p == path ||
				mode == wire.AddWatchPersistentRecursive && below &&
					t != znode.EventChildrenChanged
		}
		if hit {
			c.eventLocked(t, path)
		}
	}
}

func (s *fakeServer) createLocked(path string, data []byte, owner znode.SessionID) {
	parent := s.nodes[znode.Parent(path)]
	n := newFakeNode()
	n.data = bytes.Clone(data)
	n.stat = znode.Stat{
		Czxid: s.zxid, Mzxid: s.zxid, Pzxid: s.zxid, EphemeralOwner: owner,
		DataLength: int32(len(data)),
	}
	s.nodes[path] = n
	parent.children[znode.Base(path)] = true
	parent.creates++
	parent.stat.Pzxid = s.zxid
	parent.stat.Cversion++
	s.fireLocked(znode.EventCreated, path)
	s.fireLocked(znode.EventChildrenChanged, znode.Parent(path))
}

func (s *fakeServer) removeLocked(path string) {
	parent := s.nodes[znode.Parent(path)]
	delete(s.nodes, path)
	delete(parent.children, znode.Base(path))
	parent.stat.Pzxid = s.zxid
	parent.stat.Cversion++
	s.fireLocked(znode.EventDeleted, path)
	s.fireLocked(znode.EventChildrenChanged, znode.Parent(path))
}

func (s *fakeServer) setLocked(path string, data []byte) {
	n := s.nodes[path]
	n.data = bytes.Clone(data)
	n.stat.Mzxid = s.zxid
	n.stat.Version++
	n.stat.DataLength = int32(len(data))
	s.fireLocked(znode.EventDataChanged, path)
}

// set, create and remove are what another client does.
func (s *fakeServer) set(path, data string) {
	s.do(func() { s.zxid++; s.setLocked(path, []byte(data)) })
}

func (s *fakeServer) create(path, data string) {
	s.do(func() { s.zxid++; s.createLocked(path, []byte(data), 0) })
}

func (s *fakeServer) remove(path string) { s.do(func() { s.zxid++; s.removeLocked(path) }) }
