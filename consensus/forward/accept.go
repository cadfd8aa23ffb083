package forward

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// Accept serves the other servers' streams until there are no more.
func (f *Forwarder) Accept() {
	for {
		conn, from, err := f.cfg.Accept()
		if err != nil {
			return
		}
		f.cfg.Go(func() {
			defer conn.Close()
			f.serveStream(conn, from)
		})
	}
}

// serveStream takes commands from another server while this one leads.
func (f *Forwarder) serveStream(conn net.Conn, from state.ServerID) {
	b := f.batcher.Load()
	if b == nil || !f.cfg.Leads() {
		return
	}
	defer context.AfterFunc(b.ctx, func() { _ = conn.Close() })()
	in := bufio.NewReaderSize(conn, 64<<10)
	if kind, _, err := readFrame(in); err != nil || kind != frameOpen {
		return
	}
	if !writeFrame(conn, endFrame(appendU64(beginFrame(nil, frameContact), 0))) {
		return
	}
	f.Streams.add(from, conn)
	defer f.Streams.remove(from, conn)
	for {
		kind, body, err := readFrame(in)
		if err != nil {
			return
		}
		f.Streams.received(from)
		switch kind {
		case frameBatch:
			x, err := parseBatch(body, from)
			if err != nil {
				f.cfg.Logger.Error("refusing commands", "server", from, "error", err)
				return
			}
			if !b.submit(x) {
				return
			}
		case frameTouch:
			stamp, ids, err := parseTouch(body)
			if err != nil || !f.cfg.Leads() {
				return
			}
			f.cfg.Touched(ids)
			if !writeFrame(conn, endFrame(appendU64(beginFrame(nil, frameContact), stamp))) {
				return
			}
		default:
			f.cfg.Logger.Error("unknown frame on a stream", "server", from, "type", kind)
			return
		}
	}
}

// Streams are the other servers whose streams are connected here.
type Streams struct {
	mu   sync.Mutex // protects the fields below
	open map[state.ServerID]net.Conn
	last map[state.ServerID]time.Time // when something last came, also of those that have ended
}

func (s *Streams) add(id state.ServerID, c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open, s.last = map[state.ServerID]net.Conn{}, map[state.ServerID]time.Time{}
	}
	s.open[id], s.last[id] = c, time.Now()
}

// received notes that something came on a server's stream.
func (s *Streams) received(id state.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[id] = time.Now()
}

func (s *Streams) remove(id state.ServerID, c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] == c {
		delete(s.open, id)
	}
}

// Contact returns whether a server's stream is connected, and when something last came on
// one; the zero Time if nothing ever has.
func (s *Streams) Contact(id state.ServerID) (open bool, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id] != nil, s.last[id]
}

// Count counts the connected servers that vote and those that do not.
func (s *Streams) Count(voters map[state.ServerID]bool) (voting, others int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.open {
		if voters[id] {
			voting++
		} else {
			others++
		}
	}
	return voting, others
}
