package zk_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/znode"
)

// log is an ensemble of one server without raft: every proposal is encoded
// into an entry, as the real one does, and applied by one goroutine, in order.
type fakeLog struct {
	consensus.Handler // the server's
	machine           *state.Machine
	entries           chan fakeEntry
	stopped           chan struct{}
	done              sync.WaitGroup

	mu     sync.Mutex // protects the fields below
	hold   chan struct{}
	status consensus.Status
	millis int64

	// The applying goroutine's own.
	waiter forward.Waiter
	index  uint64
}

type fakeEntry struct {
	command []byte
	waiter  forward.Waiter
}

func newFakeLog(srv *server.Server) *fakeLog {
	l := &fakeLog{
		Handler: srv.Handler(), machine: state.New(),
		entries: make(chan fakeEntry, 100_000), stopped: make(chan struct{}),
		status: consensus.Status{Role: consensus.RoleStandalone, Leader: 1, Voters: 1},
		millis: 1_700_000_000_000,
	}
	l.BeginApply()
	l.StateReplaced(l.machine)
	l.EndApply()
	l.done.Add(1)
	go l.run()
	srv.Start(l, nil)
	l.Lead(1)
	return l
}

func (l *fakeLog) stop() {
	close(l.stopped)
	l.done.Wait()
}

// Propose implements server.Consensus.
func (l *fakeLog) Propose(c *state.Command, w forward.Waiter, _ forward.From) error {
	select {
	case l.entries <- fakeEntry{state.AppendCommand(nil, c), w}:
		return nil
	case <-l.stopped:
		return server.ErrClosed
	}
}

func (l *fakeLog) Touch(ids []znode.SessionID) { l.Touched(1, ids) }

func (l *fakeLog) TreeMemory() (limit, pending int64) { return 0, 0 }

func (l *fakeLog) Status() consensus.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

func (l *fakeLog) setStatus(f func(*consensus.Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.status)
}

// block delays proposals until the returned function is called.
func (l *fakeLog) block() (release func()) {
	gate := make(chan struct{})
	l.mu.Lock()
	l.hold = gate
	l.mu.Unlock()
	return func() {
		l.mu.Lock()
		l.hold = nil
		l.mu.Unlock()
		close(gate)
	}
}

func (l *fakeLog) run() {
	defer l.done.Done()
	for {
		select {
		case <-l.stopped:
			return
		case e := <-l.entries:
			l.mu.Lock()
			gate := l.hold
			l.millis++
			millis := l.millis
			l.mu.Unlock()
			if gate != nil {
				select {
				case <-gate:
				case <-l.stopped:
					return
				}
			}
			l.apply(e, millis)
		}
	}
}

func (l *fakeLog) apply(e fakeEntry, millis int64) {
	l.index++
	entry := state.AppendEntry(nil, millis, []state.Batch{{
		Origin: state.Origin{Server: 1, Incarnation: 1}, First: l.index, Count: 1,
		Commands: e.command,
	}})
	l.waiter = e.waiter
	l.BeginApply()
	defer l.EndApply()
	if err := l.machine.Apply(l.index, 1, entry, l); err != nil {
		panic(err)
	}
}

// Result and Gap implement state.Observer, with the methods of Handler.
func (l *fakeLog) Result(_ state.Origin, _ uint64, r *state.Result) { l.waiter.Applied(r) }
func (l *fakeLog) Gap(state.Origin, uint64)                         { panic("gap") }

// kit is a real server with a real listener on loopback.
type kit struct {
	t        testing.TB
	srv      *server.Server
	log      *fakeLog
	listener *zk.Listener
	addr     string
}

type (
	serverConfig = server.Config
	zkConfig     = zk.Config
	option       func(*serverConfig, *zkConfig)
)

func start(t testing.TB, options ...option) *kit {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, rawconn.Listener(l), options...)
}

// startOn is start with a listener of the test's own.
func startOn(t testing.TB, l net.Listener, options ...option) *kit {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	scfg := server.Config{
		ID: 1, Tick: 100 * time.Millisecond,
		MinSessionTimeout: 200 * time.Millisecond, MaxSessionTimeout: 40 * time.Second,
		Grace: 150 * time.Millisecond, ExtendedTypes: true, Logger: quiet,
		Auth: auth.New(auth.Config{SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}), // super:test
	}
	zcfg := zk.Config{Version: "0.1.0", Words: []string{"*"}, Logger: quiet}
	for _, o := range options {
		o(&scfg, &zcfg)
	}
	k := &kit{t: t, srv: server.New(scfg)}
	k.log = newFakeLog(k.srv)
	k.listener = zk.New(k.srv, zcfg)
	k.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- k.listener.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := k.listener.Shutdown(ctx); err != nil {
			t.Errorf("shutting down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
		k.srv.Stop()
		k.log.stop()
	})
	k.eventually("the server to serve", k.srv.Serving)
	return k
}

// client encodes the protocol itself.
type client struct {
	t        testing.TB
	c        net.Conn
	frames   *wire.FrameReader
	xid      wire.Xid
	id       znode.SessionID
	password []byte
	timeout  int32
}

// patience is how long anything may take, a whole connection included, before a test
// calls it stuck: long enough for a machine that has far too much to do.
const patience = time.Minute

func (k *kit) dial() *client {
	k.t.Helper()
	c, err := net.Dial("tcp", k.addr)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.over(c)
}

// over is a client on a connection of the test's own.
func (k *kit) over(c net.Conn) *client {
	k.t.Helper()
	k.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		k.t.Fatal(err)
	}
	return &client{t: k.t, c: c, frames: wire.NewFrameReader(c, 1<<30)}
}

// connect opens a session.
func (k *kit) connect() *client {
	k.t.Helper()
	return k.dial().connect(wire.ConnectRequest{TimeoutMillis: briskMillis, HasReadOnly: true})
}

func (c *client) connect(q wire.ConnectRequest) *client {
	c.t.Helper()
	x := c.shake(q)
	if x.SessionID == 0 || x.TimeoutMillis == 0 {
		c.t.Fatalf("no session: %+v", x)
	}
	c.id, c.password, c.timeout = x.SessionID, bytes.Clone(x.Password), x.TimeoutMillis
	return c
}

// shake does a handshake.
func (c *client) shake(q wire.ConnectRequest) wire.ConnectResponse {
	c.t.Helper()
	if q.Password == nil {
		q.Password = make([]byte, 16)
	}
	c.raw(frame(q.Append(nil)))
	p := c.next()
	var x wire.ConnectResponse
	r := jute.NewReader(p)
	x.Decode(r)
	if r.Err() != nil || r.Remaining() != 0 {
		c.t.Fatalf("connect response % x: %v", p, r.Err())
	}
	return x
}

func frame(payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

func (c *client) raw(b []byte) {
	c.t.Helper()
	if _, err := c.c.Write(b); err != nil {
		c.t.Fatalf("writing: %v", err)
	}
}

// send sends a request and returns its xid.
func (c *client) send(op wire.OpCode, body wire.Request) wire.Xid {
	c.t.Helper()
	c.xid++
	c.raw(wire.AppendRequest(nil, wire.RequestHeader{Xid: c.xid, Type: op}, body))
	return c.xid
}

// next reads a frame's payload.
func (c *client) next() []byte {
	c.t.Helper()
	p, err := c.frames.Next()
	if err != nil {
		c.t.Fatalf("reading: %v", err)
	}
	return p
}

// reply reads the reply to the request of this xid, which must come next.
func (c *client) reply(xid wire.Xid, op wire.OpCode) (wire.ReplyHeader, wire.Response) {
	c.t.Helper()
	p := c.next()
	h, body, err := wire.ParseReply(p, op)
	if err != nil {
		c.t.Fatalf("reply to %s: % x: %v", op, p, err)
	}
	if h.Xid != xid {
		c.t.Fatalf("reply to %s: xid %s, want %s", op, h.Xid, xid)
	}
	if h.Err != znode.OK && op != wire.OpSASL && len(p) != wire.ReplyHeaderBytes {
		c.t.Fatalf("reply to %s with error %s has a body of %d bytes",
			op, h.Err.Name(), len(p)-wire.ReplyHeaderBytes)
	}
	return h, body
}

// call sends a request and reads its reply.
func (c *client) call(op wire.OpCode, body wire.Request) (wire.ReplyHeader, wire.Response) {
	c.t.Helper()
	return c.reply(c.send(op, body), op)
}

// want is call that must end with this code.
func (c *client) want(code znode.Error, op wire.OpCode, body wire.Request) (
	wire.ReplyHeader, wire.Response,
) {
	c.t.Helper()
	h, x := c.call(op, body)
	if h.Err != code {
		c.t.Fatalf("%s %+v: %s, want %s", op, body, h.Err.Name(), code.Name())
	}
	return h, x
}

// wantOK is call, but demands OK, and returns the body alone.
func wantOK[T wire.Response](c *client, op wire.OpCode, body wire.Request) T {
	c.t.Helper()
	_, x := c.want(znode.OK, op, body)
	return x.(T)
}

// event reads a notification, which must come next.
func (c *client) event(typ znode.EventType, path string) wire.ReplyHeader {
	c.t.Helper()
	p := c.next()
	r := jute.NewReader(p)
	var h wire.ReplyHeader
	var e wire.WatcherEvent
	h.Decode(r)
	e.Decode(r)
	if r.Err() != nil || r.Remaining() != 0 || h.Xid != wire.XidNotification {
		c.t.Fatalf("want a notification of %s %s, have %+v % x", typ, path, h, p)
	}
	if e.Type != typ || e.Path != path || e.State != wire.StateSyncConnected || h.Err != 0 {
		c.t.Fatalf("notification %+v %+v, want %s %s", h, e, typ, path)
	}
	return h
}

// closed expects that the server closes the connection and sends nothing more.
func (c *client) closed() {
	c.t.Helper()
	if p, err := c.frames.Next(); err != io.EOF {
		c.t.Fatalf("have % x, %v; want the end of the connection", p, err)
	}
}

func (c *client) create(path, data string) string {
	c.t.Helper()
	return wantOK[*wire.CreateResponse](c, wire.OpCreate, create(path, data, znode.Persistent)).Path
}

func create(path, data string, mode znode.Mode) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte(data), ACL: znode.OpenACL, Mode: mode}
}

func (c *client) stat(path string) znode.Stat {
	c.t.Helper()
	return wantOK[*wire.ExistsResponse](c, wire.OpExists, &wire.ExistsRequest{Path: path}).Stat
}

// fence makes sure that everything sent before on this connection has been
// answered and nothing else has come.
func (c *client) fence() {
	c.t.Helper()
	c.send(wire.OpPing, nil)
	c.reply(wire.XidPing, wire.OpPing)
}

func (c *client) close() {
	c.t.Helper()
	c.want(znode.OK, wire.OpCloseSession, nil)
	c.closed()
}

var noDeadline time.Time

// briskMillis is a session timeout with which pings are answered at once.
const briskMillis = 9_000

// idleTick keeps the server's clock from being part of a measurement.
const idleTick = time.Minute

// eventually waits until a condition holds.
func (k *kit) eventually(what string, holds func() bool) {
	k.t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			k.t.Fatalf("waited in vain for %s", what)
		}
		runtime.Gosched()
	}
}
