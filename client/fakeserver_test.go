package client

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// verdict is a hook's decision about a request.
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

// fireLocked sends the event to every connection once, as ZooKeeper's two tables do.
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
