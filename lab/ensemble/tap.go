package ensemble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"sync"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/znode"
)

var (
	errDead = errors.New("the process was killed")
	errCut  = errors.New("the process is cut off")
)

// tap is the dialer of one candidate. It reads the data of its connections.
type tap struct {
	id       sim.ID
	recorder *recorder // nil if nothing is drawn

	mu sync.Mutex // protects the fields below

	conns    map[*tapped]bool
	dead     bool
	apart    bool            // nothing passes from now on
	own      string          // name of the candidate's znode, once it is made
	watching map[string]bool // names of the znodes that it watches
	events   int
	requests int
}

func newTap(id sim.ID, r *recorder) *tap {
	return &tap{id: id, recorder: r, conns: map[*tapped]bool{}, watching: map[string]bool{}}
}

// dial is a client.DialFunc.
func (t *tap) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &tapped{Conn: conn, tap: t, asked: map[wire.Xid]question{}}
	c.sent.frame, c.got.frame = c.request, c.reply
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.apart {
		return nil, errors.Join(fmt.Errorf("dialling %s: %w", address, errCut), conn.Close())
	}
	if t.dead {
		return nil, errors.Join(fmt.Errorf("dialling %s: %w", address, errDead), conn.Close())
	}
	t.conns[c] = true
	return c, nil
}

// kill has the effect of a process's end on the servers: its connections close, without another
// message, and none is opened again.
func (t *tap) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead = true
	for c := range t.conns {
		_ = c.Conn.Close() // a killed process does not look either
	}
}

// cut has the effect of a broken network: nothing that is written arrives, nothing is received,
// and no connection is closed for it.
func (t *tap) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.apart = true
}

// cutOff reports whether nothing passes.
func (t *tap) cutOff() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.apart
}

// reset starts the counts again.
func (t *tap) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events, t.requests = 0, 0
}

func (t *tap) counts() (events, requests int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events, t.requests
}

// queued reports whether the candidate watches a znode other than its own.
func (t *tap) queued() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.watching {
		if t.own != "" && name != t.own {
			return true
		}
	}
	return false
}

// question has what must be remembered of a request until its reply arrives.
type question struct {
	watched string // a znode that the reply puts a watch on, or ""
	made    bool   // the reply names the candidate's znode
}

// tapped is a connection that is read along.
type tapped struct {
	net.Conn
	tap       *tap
	sent, got splitter
	asked     map[wire.Xid]question // protected by tap.mu
}

// Write implements net.Conn. It reads along before it writes, because the answer
// may be here before the write has returned.
func (c *tapped) Write(p []byte) (int, error) {
	c.tap.mu.Lock()
	c.sent.add(p)
	apart := c.tap.apart
	c.tap.mu.Unlock()
	if apart {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Read implements net.Conn.
func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for err == nil && c.tap.cutOff() {
		n, err = c.Conn.Read(p) // until the client closes it, or its deadline passes
	}
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.got.add(p[:n])
	return n, err
}

// Close implements net.Conn.
func (c *tapped) Close() error {
	c.tap.mu.Lock()
	delete(c.tap.conns, c)
	clear(c.tap.watching) // a new connection leaves them again
	c.tap.mu.Unlock()
	return c.Conn.Close()
}

// request reads along one request. Called with tap.mu held.
func (c *tapped) request(frame []byte) {
	var h wire.RequestHeader
	var r jute.Reader
	r.Reset(frame)
	h.Decode(&r)
	if h.Xid < 0 || h.Type == wire.OpSync || h.Type == wire.OpCloseSession {
		return // heartbeats, and the runner's own
	}
	c.tap.requests++
	if c.tap.recorder != nil {
		c.tap.recorder.asked(c, h.Xid, h.Type, c.tap.apart)
	}
	switch h.Type {
	case wire.OpGetData:
		var q wire.GetDataRequest
		if q.Decode(&r); q.Watch {
			c.asked[h.Xid] = question{watched: name(q.Path)}
		}
	case wire.OpCreate, wire.OpCreate2:
		var q wire.CreateRequest
		if q.Decode(&r); q.Mode == znode.EphemeralSequential {
			c.asked[h.Xid] = question{made: true}
		}
	}
}

// reply reads along one frame of the server. Called with tap.mu held.
func (c *tapped) reply(frame []byte) {
	var h wire.ReplyHeader
	var r jute.Reader
	r.Reset(frame)
	h.Decode(&r)
	if h.Xid == wire.XidNotification {
		var e wire.WatcherEvent
		e.Decode(&r)
		c.tap.events++
		if c.tap.recorder != nil {
			c.tap.recorder.event(c)
		}
		delete(c.tap.watching, name(e.Path))
		return
	}
	if c.tap.recorder != nil {
		c.tap.recorder.answered(c, h.Xid)
	}
	q, ok := c.asked[h.Xid]
	delete(c.asked, h.Xid)
	switch {
	case !ok || h.Err != znode.OK:
	case q.made:
		c.tap.own = name(r.Ustring()) // both kinds of answers begin with the path
	default:
		c.tap.watching[q.watched] = true
	}
}

// name is the last element of a znode's path: enough to distinguish the znodes of one election,
// in any chroot. It is a copy, because a decoded path lies in the frame.
func name(p string) string { return strings.Clone(path.Base(p)) }

// splitter cuts one direction of a connection into frames. The first, of the
// handshake, is not passed on.
type splitter struct {
	buf   []byte // bounded by the largest frame, which client and server bound
	begun bool
	frame func([]byte)
}

func (s *splitter) add(p []byte) {
	s.buf = append(s.buf, p...)
	for len(s.buf) >= wire.FrameLengthBytes {
		n := wire.FrameLengthBytes + int(binary.BigEndian.Uint32(s.buf))
		if len(s.buf) < n {
			return
		}
		if s.begun {
			s.frame(s.buf[wire.FrameLengthBytes:n])
		}
		s.begun = true
		s.buf = append(s.buf[:0], s.buf[n:]...)
	}
}
