package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// patience bounds the waits of the tests on real sockets, on however busy a machine.
const patience = 60 * time.Second

// dialTCP is dial over a socket, which callers may write to and read from.
func (s *fakeServer) dialTCP(ctx context.Context, _, address string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials = append(s.dials, address)
	if s.down {
		return nil, errRefused
	}
	ours, theirs, err := socketPair(ctx)
	if err != nil {
		return nil, err
	}
	s.acceptLocked(ours)
	return theirs, nil
}

// socketPair is net.Pipe with sockets.
func socketPair(ctx context.Context) (ours net.Conn, theirs *net.TCPConn, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	if ours, err = listener.Accept(); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return ours, conn.(*net.TCPConn), nil
}

// withTCP is withFake over sockets, in real time.
func withTCP(t *testing.T, f func(t *testing.T, s *fakeServer, c *Client)) {
	t.Helper()
	s := newFakeServer(t)
	defer s.stop()
	c := dialFake(t, s, WithDialer(s.dialTCP), WithSessionTimeout(patience))
	defer c.Close()
	f(t, s, c)
}

// held is a request that the server has not answered yet.
type held struct {
	conn   *fakeConn
	header wire.RequestHeader
}

func (h held) answerLocked(body wire.Response) { h.conn.answerLocked(h.header.Xid, body, znode.OK) }

// hold keeps back the answer to the first request of a type.
func hold(s *fakeServer, op wire.OpCode) <-chan held {
	all := make(chan held, 1)
	s.do(func() {
		s.hook = func(c *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
			if h.Type != op || cap(all) == len(all) {
				return serve
			}
			all <- held{c, h}
			s.hook = nil
			return noAnswer
		}
	})
	return all
}

// result is what a call in another goroutine returns.
func result(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// TestDirect_MixedWithOthers_InOrder: a request that its caller writes is followed by
// others, synchronous and not; all are answered in their order.
func TestDirect_MixedWithOthers_InOrder(t *testing.T) {
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		for range 3 {
			requests := make(chan held, 3) // in the order in which they must be answered
			s.do(func() {
				s.hook = func(c *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
					requests <- held{c, h}
					return noAnswer
				}
			})
			first := result(func() error { _, _, err := c.Get(t.Context(), "/"); return err })
			all := []held{<-requests}
			second := result(func() error { _, _, err := c.Exists(t.Context(), "/"); return err })
			third := c.Async().Sync(t.Context(), "/")
			all = append(all, <-requests, <-requests)
			s.do(func() {
				s.hook = nil
				for _, h := range all {
					h.answerLocked(map[wire.OpCode]wire.Response{wire.OpGetData: &wire.GetDataResponse{},
						wire.OpExists: &wire.ExistsResponse{}, wire.OpSync: &wire.SyncResponse{}}[h.header.Type])
				}
			})
			must(t, <-first)
			must(t, <-second)
			_, err := third.Wait(t.Context())
			must(t, err)
		}
		_, err := c.Async().Get(t.Context(), "/").Wait(t.Context())
		must(t, err)
	})
}

// TestDirect_ContextEnds_OutcomeUnknown: the caller has written the request, and stops
// waiting before the answer comes.
func TestDirect_ContextEnds_OutcomeUnknown(t *testing.T) {
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		for range 5 {
			requests := hold(s, wire.OpSetData)
			ctx, cancel := context.WithCancel(t.Context())
			set := result(func() error { _, err := c.Set(ctx, "/", nil, AnyVersion); return err })
			h := <-requests
			cancel()
			wantErr(t, <-set, ErrOutcomeUnknown, context.Canceled)
			s.do(func() { h.answerLocked(&wire.SetDataResponse{}) })
		}
		s.do(func() {
			if len(s.connects) != 1 {
				t.Errorf("%d connections, want that one lasts", len(s.connects))
			}
		})
	})
}

// TestDirect_ConnectionBreaks_OutcomeUnknown: a caller has written a request
// itself when the connection breaks.
func TestDirect_ConnectionBreaks_OutcomeUnknown(t *testing.T) {
	for _, v := range []verdict{swallow, cut} {
		withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
			s.do(func() { s.hook = onFirst(wire.OpSetData, v) })
			_, err := c.Set(t.Context(), "/", []byte("x"), AnyVersion)
			wantErr(t, err, ErrOutcomeUnknown, ErrConnectionLoss)
			s.do(func() { s.hook = onFirst(wire.OpGetData, v) })
			data, _, err := c.Get(t.Context(), "/") // sent again
			must(t, err)
			if got := string(data) == "x"; got != (v == swallow) {
				t.Errorf("data %q: the test is wrong", data)
			}
		})
	}
}

func TestDirect_Close_EndsTheCaller(t *testing.T) {
	tier.Seconds(t)
	t.Parallel() // it waits for a timeout
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		requests := hold(s, wire.OpSetData)
		set := result(func() error { _, err := c.Set(t.Context(), "/", nil, AnyVersion); return err })
		<-requests
		s.do(func() { s.silent = true })
		wantErr(t, c.Close(), ErrNotClosed)
		wantErr(t, <-set, ErrOutcomeUnknown, ErrClosed)
	})
}
