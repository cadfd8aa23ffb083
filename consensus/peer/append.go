package peer

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// AppendEntries has connections of its own (KindAppend), because it is what a write consists of, and raft's
// NetworkTransport spends a tenth of an entry's CPU on msgpack. Nothing else about it changes:
// a request has one answer, and a connection one request at a time.
//
// A notice is a request whose answer nobody would look at. It goes on the same connections, so
// what is told before a request is read before it, too.

const (
	// maxIdle is how many connections to a server are kept: replication, heartbeat and push take
	// one each.
	maxIdle = 3
	// appendBuffer is what is sent and read in one system call.
	appendBuffer = 64 << 10
)

// appender is the leader's side.
type appender struct {
	// set at construction
	mux     *Mux
	timeout time.Duration

	mu   sync.Mutex // protects the field below
	idle map[raft.ServerAddress][]*appendConn
}

// appendConn belongs to one goroutine at a time.
type appendConn struct {
	net.Conn
	r *bufio.Reader
	w *bufio.Writer
}

func newAppender(cfg TransportConfig) *appender {
	return &appender{mux: cfg.Mux, timeout: cfg.Timeout, idle: map[raft.ServerAddress][]*appendConn{}}
}

// call sends a request and waits for its answer.
func (a *appender) call(
	target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	return a.with(target, func(c *appendConn) error {
		if err := writeRequest(c.w, formRequest, req); err != nil {
			return err
		}
		return readAppendAnswer(c.r, resp)
	})
}

// tell sends a request that is not answered. No error does not mean that it arrives.
func (a *appender) tell(target raft.ServerAddress, req *raft.AppendEntriesRequest) error {
	return a.with(target, func(c *appendConn) error { return writeRequest(c.w, formNotice, req) })
}

// with has f use a connection to target, which is kept if nothing broke.
func (a *appender) with(target raft.ServerAddress, f func(*appendConn) error) error {
	c, err := a.take(target)
	if err != nil {
		return err
	}
	if err = c.SetDeadline(time.Now().Add(a.timeout)); err == nil {
		err = f(c)
	}
	if err != nil {
		if _, ok := errors.AsType[*declinedError](err); !ok {
			_ = c.Close()
			return err
		}
	}
	a.put(target, c)
	return err
}

// take gives the connection that was used last, or a new one.
func (a *appender) take(target raft.ServerAddress) (*appendConn, error) {
	a.mu.Lock()
	if idle := a.idle[target]; len(idle) > 0 {
		last := len(idle) - 1
		c := idle[last]
		a.idle[target] = idle[:last]
		a.mu.Unlock()
		return c, nil
	}
	a.mu.Unlock()
	c, err := a.mux.dialMember(KindAppend, target, a.timeout)
	if err != nil {
		return nil, err
	}
	return &appendConn{Conn: c, r: bufio.NewReaderSize(c, maxAnswer),
		w: bufio.NewWriterSize(c, appendBuffer)}, nil
}

func (a *appender) put(target raft.ServerAddress, c *appendConn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.idle[target]) < maxIdle {
		a.idle[target] = append(a.idle[target], c)
		return
	}
	_ = c.Close()
}

// acceptAppends is the follower's side.
func (t *Transport) acceptAppends() {
	for {
		c, err := t.mux.next(t.mux.raftClosed, KindAppend)
		if err != nil {
			return
		}
		if !t.group.run(func() { t.serveAppends(c) }) {
			_ = c.Close()
			return
		}
	}
}

// serveAppends hands the requests of a connection to raft, one after the other.
func (t *Transport) serveAppends(c *Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReaderSize(c, appendBuffer)
	answer := make(chan raft.RPCResponse, 1) // room for one: raft never waits for us
	for {
		form, req, err := readRequest(r)
		if err != nil {
			t.appendsEnded(c, "reading a request", err)
			return
		}
		t.receive(raft.RPC{Command: req, RespChan: answer})
		select {
		case <-t.done:
			return
		case resp := <-answer:
			if form == formNotice {
				continue
			}
			if err := writeAnswer(c, resp); err != nil {
				t.appendsEnded(c, "answering a request", err)
				return
			}
		}
	}
}

// appendsEnded says why, unless this server stops.
func (t *Transport) appendsEnded(c *Conn, doing string, err error) {
	select {
	case <-t.done:
		return
	default:
	}
	level := slog.LevelDebug
	if errors.Is(err, errMalformed) {
		level = slog.LevelWarn
	}
	t.logger.Log(context.Background(), level, "append connection ended",
		"server", c.ServerID(), "while", doing, "error", err)
}
