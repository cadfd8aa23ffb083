package client

import (
	"bytes"
	"net"
	"sync"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

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
