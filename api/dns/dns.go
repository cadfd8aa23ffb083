// Package dns answers DNS questions about the members of groups: A, AAAA, SRV and TXT, from this server's tree. It
// resolves no other names, transfers no zone, and signs nothing. A question has no identity, so it is answered from
// what world:anyone may read, which includes the parents of a group.
//
// A name is a path backwards: w1.web.app.zk-lite.internal is /app/web/w1. If that is an ephemeral znode, it is a
// member, else a group, whose members are its ephemeral children. Members whose data have the mark that they are not
// healthy are left out (internal/memberdata, which has the forms of addresses, too).
//
// The answers are what this server has applied, as for any other reader. Without a majority they become old; a server
// that has not caught up since its start, is drained or is halted answers SERVFAIL, so that others are asked.
//
// Anyone can ask, and over UDP in the name of others: see limits.go for what bounds the work and the bytes.
//
// # Concurrency
//
// Serve runs in a goroutine of its caller, reads TCP's listener there, and starts one for UDP, which answers one
// question after the other, and one for each TCP connection, which does the same. Server.mu protects the table of
// connections, limiter.mu the counts, Server.turn orders the answers; the view lock is taken under turn.
package dns

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/server"
)

// Config configures a Server.
type Config struct {
	Domain string        // above all names, without a dot at its ends; lower case
	TTL    time.Duration // of all records; whole seconds count

	Descriptors *process.DescriptorShare // bounds the TCP connections, beside maxConns; nil: not
	Logger      *slog.Logger
}

// Server answers questions.
type Server struct {
	srv *server.Server
	cfg Config

	questions, limited atomic.Int64
	limits             limiter
	turn               sync.Mutex // held while an answer is found: DNS takes one processor at most

	mu     sync.Mutex // protects the fields below
	conns  map[net.Conn]netip.Addr
	closed bool
	work   sync.WaitGroup // the goroutines
}

// New returns a Server that is not served yet.
func New(srv *server.Server, cfg Config) *Server {
	return &Server{srv: srv, cfg: cfg, limits: newLimiter(), conns: map[net.Conn]netip.Addr{}}
}

// Metrics emits the server's figures. It is usable on nil.
func (s *Server) Metrics(emit func(key string, value any)) {
	var questions, limited int64
	if s != nil {
		questions, limited = s.questions.Load(), s.limited.Load()
	}
	emit("dns_questions_total", questions)
	emit("dns_limited_total", limited)
}

// Serve answers questions on both until one of them is closed. It closes the other.
func (s *Server) Serve(udp net.PacketConn, tcp net.Listener) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.serveUDP(udp)
		_ = tcp.Close()
	}()
	s.serveTCP(tcp)
	_ = udp.Close()
	<-ended
}

// Close ends the connections and waits for the answers under way. The caller closes what Serve was given before it.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

func (s *Server) serveUDP(conn net.PacketConn) {
	question := make([]byte, maxQuestion)
	for pause := time.Duration(0); ; {
		n, from, err := conn.ReadFrom(question)
		if err != nil {
			if !s.goOn(&pause, err) {
				return
			}
			continue
		}
		pause = 0
		if reply := s.answer(question[:n], addrOf(from), false); reply != nil {
			_, _ = conn.WriteTo(reply, from) // who asked will ask again
		}
	}
}

func (s *Server) serveTCP(l net.Listener) {
	for pause := time.Duration(0); ; {
		c, err := l.Accept()
		if err != nil {
			if !s.goOn(&pause, err) {
				return
			}
			continue
		}
		pause = 0
		s.admit(c)
	}
}

// goOn reports whether a port still works after an error, and waits: descriptors or memory may be short for now.
func (s *Server) goOn(pause *time.Duration, err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	*pause = min(max(2**pause, 5*time.Millisecond), time.Second)
	s.cfg.Logger.Warn("accepting a client failed", "error", err, "retry_in", *pause)
	<-time.After(*pause)
	return true
}

// admit serves a connection, or closes it if there are too many.
func (s *Server) admit(c net.Conn) {
	from := addrOf(c.RemoteAddr())
	s.mu.Lock()
	defer s.mu.Unlock()
	same := 0
	for _, addr := range s.conns {
		if addr == from {
			same++
		}
	}
	room := s.cfg.Descriptors.Take()
	if s.closed || len(s.conns) >= maxConns || same >= maxPerAddress || !room {
		_ = c.Close()
		s.cfg.Descriptors.Return()
		return
	}
	s.conns[c] = from
	s.work.Go(func() {
		s.converse(c, from)
		_ = c.Close()
		s.cfg.Descriptors.Return()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
	})
}

// converse answers the questions of a TCP connection, which have their lengths in front, until it ends or is too slow.
func (s *Server) converse(c net.Conn, from netip.Addr) {
	question := make([]byte, maxQuestion)
	for {
		_ = c.SetDeadline(time.Now().Add(tcpPatience))
		if _, err := io.ReadFull(c, question[:2]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(question))
		if n > len(question) {
			return
		}
		if _, err := io.ReadFull(c, question[:n]); err != nil {
			return
		}
		reply := s.answer(question[:n], from, true)
		if reply == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// addrOf is the address of a client's machine.
func addrOf(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap()
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
