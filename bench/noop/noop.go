// Package noop is a server that speaks ZooKeeper's protocol and does no work at all: every
// request is answered with a reply made beforehand, nothing is looked up, changed, stored or
// replicated. The throughput of a load with it is an upper bound for any server on the same
// machine with the same generator.
//
// Its replies are wrong on purpose, and it is of no other use.
//
// # Concurrency
//
// Each connection has one goroutine, which answers all requests that have arrived together with
// one write.
package noop

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// maxRequest is the largest request that is read.
	maxRequest = wire.DefaultMaxFrame
	// bufferBytes is read and written at a time.
	bufferBytes = 64 << 10
	// valueBytes is the size of the data of every znode, that of the comparison.
	valueBytes = 100
)

// Server answers connections until it is closed.
type Server struct {
	listener net.Listener
	bodies   map[wire.OpCode][]byte // set at construction
	running  sync.WaitGroup

	mu     sync.Mutex // protects the fields below
	conns  map[net.Conn]bool
	closed bool
}

// Listen starts a server at an address; port 0 is any free one.
func Listen(addr string) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("the no-op server: %w", err)
	}
	s := &Server{listener: rawconn.Listener(l), bodies: bodies(), conns: map[net.Conn]bool{}}
	s.running.Go(s.accept)
	return s, nil
}

// Addr is where clients connect.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends all connections.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.running.Wait()
	return err
}

// bodies are the replies; other operations are answered without a body.
func bodies() map[wire.OpCode][]byte {
	stat := znode.Stat{DataLength: valueBytes}
	data := make([]byte, valueBytes)
	records := map[wire.OpCode]wire.Record{
		wire.OpGetData:      &wire.GetDataResponse{Data: data, Stat: stat},
		wire.OpSetData:      &wire.SetDataResponse{Stat: stat},
		wire.OpExists:       &wire.ExistsResponse{Stat: stat},
		wire.OpCreate:       &wire.CreateResponse{Path: "/zk-lite-bench/new/c10-10000"},
		wire.OpGetChildren2: &wire.GetChildren2Response{Stat: stat},
		wire.OpSync:         &wire.SyncResponse{Path: "/zk-lite-bench/d0/k100"},
		wire.OpMulti:        &wire.MultiResponse{},
	}
	all := map[wire.OpCode][]byte{}
	for op, r := range records {
		all[op] = r.Append(nil)
	}
	return all
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		if !s.add(c) {
			c.Close()
			return
		}
		s.running.Go(func() {
			defer s.remove(c)
			// The end of a connection is not worth a word.
			_ = s.serve(c)
		})
	}
}

func (s *Server) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = true
	return true
}

func (s *Server) remove(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

var errShort = errors.New("a request without a header")

func (s *Server) serve(c net.Conn) error {
	r := bufio.NewReaderSize(c, bufferBytes)
	if _, err := next(r); err != nil {
		return err
	}
	out := hello()
	for zxid := uint64(1); ; zxid++ {
		if r.Buffered() == 0 || len(out) >= bufferBytes {
			if _, err := c.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
		request, err := next(r)
		if err != nil {
			return err
		}
		op := wire.OpCode(binary.BigEndian.Uint32(request[4:]))
		body := s.bodies[op]
		out = binary.BigEndian.AppendUint32(out, uint32(wire.ReplyHeaderBytes+len(body)))
		out = append(out, request[:4]...) // the xid
		out = binary.BigEndian.AppendUint64(out, zxid)
		out = append(append(out, 0, 0, 0, 0), body...)
		if op == wire.OpCloseSession {
			_, err := c.Write(out)
			return err
		}
	}
}

// hello is the answer to the handshake.
func hello() []byte {
	b, mark := wire.BeginFrame(nil)
	b = (&wire.ConnectResponse{TimeoutMillis: 30_000, SessionID: 1, HasReadOnly: true,
		Password: make([]byte, znode.PasswordSize)}).Append(b)
	wire.EndFrame(b, mark)
	return b
}

// next returns the next request's header and skips the rest of it.
func next(r *bufio.Reader) (header [wire.RequestHeaderBytes]byte, err error) {
	length, err := r.Peek(wire.FrameLengthBytes)
	if err != nil {
		return header, err
	}
	n, err := wire.CheckFrameLength([wire.FrameLengthBytes]byte(length), maxRequest)
	if err != nil {
		return header, err
	}
	if n < len(header) {
		return header, errShort
	}
	head, err := r.Peek(wire.FrameLengthBytes + len(header))
	if err != nil {
		return header, err
	}
	copy(header[:], head[wire.FrameLengthBytes:])
	_, err = r.Discard(wire.FrameLengthBytes + n)
	return header, err
}
