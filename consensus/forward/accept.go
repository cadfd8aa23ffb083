package forward

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/crash"
)

// Accept serves the other servers' streams until there are no more.
func (f *Forwarder) Accept() {
	for {
		conn, from, err := f.cfg.Network.Accept()
		if err != nil {
			return
		}
		f.cfg.Tasks.Go(func() {
			defer conn.Close()
			if err := f.serveStream(conn, from); err != nil {
				f.logEnd(from, err)
			}
		})
	}
}

// logEnd logs why the stream of another server has ended. That of a server that stops is nothing special.
func (f *Forwarder) logEnd(from state.ServerID, err error) {
	if !errors.Is(err, errMalformed) {
		f.cfg.Logger.Debug("a server's stream has ended", "server", from, "error", err)
		return
	}
	const refused = "refusing what another server sends on its stream"
	if pass, leftOut := f.repeats.Pass(refused); pass {
		f.cfg.Logger.Error(refused, "server", from, "error", err, "left_out", leftOut)
	}
}

// serveStream takes commands from another server while this one leads. It returns what is wrong with the stream.
func (f *Forwarder) serveStream(conn net.Conn, from state.ServerID) error {
	b := f.batcher.Load()
	if b == nil || !f.cfg.Ensemble.Leads() {
		return nil
	}
	defer context.AfterFunc(b.ctx, func() { _ = conn.Close() })()
	in := bufio.NewReaderSize(conn, 64<<10)
	kind, body, err := readFrame(in)
	if err != nil {
		return err
	}
	if kind != frameOpen {
		return fmt.Errorf("%w: the first frame has type %d", errMalformed, kind)
	}
	limit, hasLimit, err := parseOpen(body)
	if err != nil {
		return err
	}
	if err := writeFrame(conn, appendContact(nil, 0, f.ensembleLimit(), hasLimit)); err != nil {
		return err
	}
	f.cfg.Streams.add(from, conn, limit)
	defer f.cfg.Streams.remove(from, conn)
	defer crash.OnPanic()
	for {
		kind, body, err := readFrame(in)
		if err != nil {
			return err
		}
		f.cfg.Streams.received(from)
		switch kind {
		case frameBatch:
			x, err := parseBatch(body, from)
			if err != nil {
				return err
			}
			if !b.submit(x) {
				return nil
			}
		case frameTouch:
			stamp, ids, err := parseTouch(body)
			if err != nil || !f.cfg.Ensemble.Leads() {
				return err
			}
			f.cfg.Touched(from, ids)
			if err := writeFrame(conn, appendContact(nil, stamp, f.ensembleLimit(), hasLimit)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: unknown frame of type %d", errMalformed, kind)
		}
	}
}

// Streams are the other servers whose streams are connected here.
type Streams struct {
	mu   sync.Mutex // protects the fields below
	open map[state.ServerID]net.Conn
	// Also of streams that have ended: when something last came, and the limit for the memory
	// of the server's tree (0: none).
	last   map[state.ServerID]time.Time
	limits map[state.ServerID]int64
}

func (s *Streams) add(id state.ServerID, c net.Conn, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open, s.last = map[state.ServerID]net.Conn{}, map[state.ServerID]time.Time{}
		s.limits = map[state.ServerID]int64{}
	}
	s.open[id], s.last[id], s.limits[id] = c, time.Now(), limit
}

// limit is the smallest limit of the servers that vote, as far as they have been connected here; 0: none has
// one. That of a server that is down counts, since it is to come back.
func (s *Streams) limit(voters map[state.ServerID]bool) (least int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, limit := range s.limits {
		if voters[id] {
			least = smaller(least, limit)
		}
	}
	return least
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
