package client

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

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

// withTCP is withFake over sockets, in real time. Once callers read, they go on unless
// something else is to be read.
func withTCP(t *testing.T, f func(t *testing.T, s *fakeServer, c *Client), opts ...Option) {
	t.Helper()
	s := newFakeServer(t)
	defer s.stop()
	c := dialFake(t, s, append([]Option{
		WithDialer(s.dialTCP), withLease(time.Hour), WithSessionTimeout(patience),
	}, opts...)...)
	defer c.Close()
	f(t, s, c)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); !condition(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

func isParked(c *Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link != nil && c.link.parked
}

func isLed(c *Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link != nil && c.link.leader != nil
}

// parkReader makes calls until callers read.
func parkReader(t *testing.T, c *Client) {
	t.Helper()
	eventually(t, "the reader's goroutine is parked", func() bool {
		_, _, err := c.Get(t.Context(), "/")
		mustNot(t, err)
		return isParked(c)
	})
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

func TestLead_CallsOneAfterTheOther_CallersRead(t *testing.T) {
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		parkReader(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, _, err := c.Create(ctx, "/a", []byte("0"), Persistent)
		mustNot(t, err)
		for i := range 50 {
			_, err := c.Set(ctx, "/a", []byte(strconv.Itoa(i)), Version(i))
			mustNot(t, err)
			data, _, err := c.Get(t.Context(), "/a")
			mustNot(t, err)
			if string(data) != strconv.Itoa(i) {
				t.Fatalf("read %q, want %d", data, i)
			}
			_, _, err = c.Get(ctx, "/none")
			wantErr(t, err, ErrNoNode)
		}
		ok, _, err := c.Exists(ctx, "/a")
		children, _, listErr := c.Children(ctx, "/")
		if err != nil || listErr != nil || !ok || len(children) != 1 {
			t.Fatalf("exists %v (%v), children %v (%v)", ok, err, children, listErr)
		}
		mustNot(t, c.Delete(ctx, "/a", AnyVersion))
		if !isParked(c) {
			t.Error("the reader's goroutine was woken, although nothing else was to be read")
		}
	})
}

// TestLead_OtherOperations_WakeTheReader: while a caller reads others call, wait and
// do not wait; all are answered, in their order.
func TestLead_OtherOperations_WakeTheReader(t *testing.T) {
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		for range 3 {
			parkReader(t, c)
			requests := make(chan held, 3) // in the order in which they must be answered
			s.do(func() {
				s.hook = func(c *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
					requests <- held{c, h}
					return noAnswer
				}
			})
			first := result(func() error { _, _, err := c.Get(t.Context(), "/"); return err })
			all := []held{<-requests}
			if !isLed(c) {
				t.Fatal("the caller does not read")
			}
			second := result(func() error { _, _, err := c.Exists(t.Context(), "/"); return err })
			third := c.SyncAsync(t.Context(), "/")
			all = append(all, <-requests, <-requests)
			s.do(func() {
				s.hook = nil
				for _, h := range all {
					h.answerLocked(map[wire.OpCode]wire.Response{wire.OpGetData: &wire.GetDataResponse{},
						wire.OpExists: &wire.ExistsResponse{}, wire.OpSync: &wire.SyncResponse{}}[h.header.Type])
				}
			})
			mustNot(t, <-first)
			mustNot(t, <-second)
			_, err := third.Wait(t.Context())
			mustNot(t, err)
		}
		parkReader(t, c)
		_, err := c.GetAsync(t.Context(), "/").Wait(t.Context())
		mustNot(t, err)
	})
}

// TestLead_Watch_NobodyParks: with a watch a server may say something at any time.
func TestLead_Watch_NobodyParks(t *testing.T) {
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		for range 3 {
			parkReader(t, c)
			_, _, w, err := c.GetW(t.Context(), "/")
			mustNot(t, err)
			for range 2 * leadStreak {
				_, _, err := c.Get(t.Context(), "/")
				mustNot(t, err)
			}
			if isParked(c) {
				t.Fatal("nobody reads events")
			}
			s.set("/", "x")
			if e := <-w.C(); e.Type != EventDataChanged {
				t.Fatalf("event %+v", e)
			}
		}
	})
}

// TestLead_ContextEnds_CallerReturns: the caller must not stay in its read, and what it
// leaves behind is read by the goroutine.
func TestLead_ContextEnds_CallerReturns(t *testing.T) {
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		for range 5 {
			parkReader(t, c)
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

// TestLead_ContextOfAnEarlierCall_EndsNothing ends contexts just when their calls have
// been answered and others read.
func TestLead_ContextOfAnEarlierCall_EndsNothing(t *testing.T) {
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		parkReader(t, c)
		var group sync.WaitGroup
		for range 300 {
			ctx, cancel := context.WithCancel(t.Context())
			_, _, err := c.Get(ctx, "/")
			mustNot(t, err)
			group.Go(cancel)
			_, _, err = c.Get(t.Context(), "/")
			mustNot(t, err)
			ctx, cancel = context.WithCancel(t.Context())
			group.Go(cancel)
			if _, _, err := c.Get(ctx, "/"); err != nil {
				wantErr(t, err, context.Canceled)
			}
		}
		group.Wait()
		s.do(func() {
			if len(s.connects) != 1 {
				t.Errorf("%d connections, want that one lasts", len(s.connects))
			}
		})
	})
}

// TestLead_ConnectionBreaks_OutcomeUnknown: a caller that has written itself and reads
// itself when the connection breaks.
func TestLead_ConnectionBreaks_OutcomeUnknown(t *testing.T) {
	for _, v := range []verdict{swallow, cut} {
		withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
			parkReader(t, c)
			s.do(func() { s.hook = onFirst(wire.OpSetData, v) })
			_, err := c.Set(t.Context(), "/", []byte("x"), AnyVersion)
			wantErr(t, err, ErrOutcomeUnknown, ErrConnectionLoss)
			parkReader(t, c)
			s.do(func() { s.hook = onFirst(wire.OpGetData, v) })
			data, _, err := c.Get(t.Context(), "/") // sent again
			mustNot(t, err)
			if got := string(data) == "x"; got != (v == swallow) {
				t.Errorf("data %q: the test is wrong", data)
			}
		})
	}
}

// TestLead_Nonsense_BreaksTheConnection: a caller that reads sees what the goroutine
// would have seen.
func TestLead_Nonsense_BreaksTheConnection(t *testing.T) {
	for name, frame := range map[string][]byte{
		"negative length": {0xff, 0xff, 0xff, 0xff},
		"short header":    {0, 0, 0, 1, 7},
		"strange xid":     wire.AppendReply(nil, wire.ReplyHeader{Xid: 12345}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
				parkReader(t, c)
				requests := hold(s, wire.OpSetData)
				set := result(func() error { _, err := c.Set(t.Context(), "/", nil, AnyVersion); return err })
				h := <-requests
				s.do(func() { h.conn.sendLocked(frame) })
				wantErr(t, <-set, ErrOutcomeUnknown, ErrProtocol)
			})
		})
	}
}

func TestLead_Close_EndsTheCaller(t *testing.T) {
	t.Parallel() // it waits for a timeout
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		parkReader(t, c)
		requests := hold(s, wire.OpSetData)
		set := result(func() error { _, err := c.Set(t.Context(), "/", nil, AnyVersion); return err })
		<-requests
		s.do(func() { s.silent = true })
		wantErr(t, c.Close(), ErrNotClosed)
		wantErr(t, <-set, ErrOutcomeUnknown, ErrClosed)
	})
}

// TestLead_SilentServer_IsGivenUp: a caller that reads has the deadline of reads, and
// pings are sent and their answers are read meanwhile.
func TestLead_SilentServer_IsGivenUp(t *testing.T) {
	t.Parallel() // it waits for a timeout
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		parkReader(t, c)
		requests := hold(s, wire.OpSetData)
		set := result(func() error { _, err := c.Set(t.Context(), "/", nil, AnyVersion); return err })
		<-requests
		eventually(t, "a ping is sent", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Contains(s.requests, wire.OpPing)
		})
		s.do(func() { s.silent = true })
		wantErr(t, <-set, ErrOutcomeUnknown)
	}, WithSessionTimeout(2*time.Second))
}

// TestLead_SlowServer_IsNotGivenUp: a server that answers pings is there, however long
// it takes for the caller's answer.
func TestLead_SlowServer_IsNotGivenUp(t *testing.T) {
	t.Parallel() // it waits for the time of a ping
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		parkReader(t, c)
		requests := hold(s, wire.OpSetData)
		set := result(func() error { _, err := c.Set(t.Context(), "/", nil, AnyVersion); return err })
		h := <-requests
		before := c.clock()
		eventually(t, "a ping is sent", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Contains(s.requests, wire.OpPing)
		})
		s.do(func() { h.answerLocked(&wire.SetDataResponse{}) })
		mustNot(t, <-set)
		c.mu.Lock()
		l := c.link
		c.mu.Unlock()
		if l.readFrom < before { // nobody reads now
			t.Error("the answer to the ping has not moved the deadline")
		}
	}, WithSessionTimeout(12*time.Second))
}

// TestLead_LargeAnswer_IsLeftToTheReader: it does not fit into the buffer of a caller.
func TestLead_LargeAnswer_IsLeftToTheReader(t *testing.T) {
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		for _, size := range []int{aheadBytes - 200, aheadBytes, 10 * aheadBytes} {
			s.set("/", string(bytes.Repeat([]byte("x"), size)))
			parkReader(t, c)
			data, _, err := c.Get(t.Context(), "/")
			mustNot(t, err)
			if len(data) != size {
				t.Errorf("%d bytes, want %d", len(data), size)
			}
		}
	})
}

// TestLead_NoMoreCalls_ReaderComesBack: with nobody there to read, the end of the
// connection is still noticed.
func TestLead_NoMoreCalls_ReaderComesBack(t *testing.T) {
	withTCP(t, func(t *testing.T, s *fakeServer, c *Client) {
		for connects := 2; connects < 5; connects++ {
			for range 3 * leadStreak {
				_, _, err := c.Get(t.Context(), "/")
				mustNot(t, err)
			}
			s.cutAll()
			eventually(t, "the client has connected again", func() bool {
				return len(get(s, &s.connects)) == connects && c.State().State != StateSuspended
			})
		}
	}, withLease(leaseTime))
}
