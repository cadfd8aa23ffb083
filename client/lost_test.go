package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// onFirst returns a hook that gives one verdict to the first request of a type.
func onFirst(op wire.OpCode, v verdict) func(*fakeConn, wire.RequestHeader, wire.Request) verdict {
	done := false
	return func(_ *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
		if h.Type != op || done {
			return serve
		}
		done = true
		return v
	}
}

// A transaction that changes something is sent once; one that only reads is compared again.
func TestClient_Transact_ReplyLost(t *testing.T) {
	for _, writes := range []bool{true, false} {
		withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
			s.do(func() { s.hook = onFirst(wire.OpBranch, cut) })
			runs := 0
			err := c.Transact(t.Context(), func(tx *Tx) error {
				runs++
				if writes {
					tx.Set("/", []byte("x"))
				}
				_, err := tx.Children(t.Context(), "/")
				return err
			})
			if errors.Is(err, ErrOutcomeUnknown) != writes || !writes && err != nil || runs != 1 {
				t.Errorf("writes %v: %d runs, error %v, want one run, and an unknown outcome only if it writes", writes, runs, err)
			}
		})
	}
}

func TestClient_Set_ReplyLost_OutcomeUnknown(t *testing.T) {
	for _, v := range []verdict{swallow, cut} {
		withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
			s.do(func() { s.hook = onFirst(wire.OpSetData, v) })
			_, err := c.Set(t.Context(), "/", []byte("x"), AnyVersion)
			wantErr(t, err, ErrOutcomeUnknown, ErrConnectionLoss)
			var op *OpError
			if !errors.As(err, &op) || op.Op != "setData" || op.Path != "/" {
				t.Errorf("error %#v, want one with setData and /", err)
			}
			data, _, err := c.Get(t.Context(), "/")
			must(t, err)
			if got := string(data) == "x"; got != (v == swallow) {
				t.Errorf("data %q: the test is wrong", data)
			}
		})
	}
}

// A stopping server reports what it has not done: the client sends that again, even operations that must not
// happen twice.
func TestClient_GoAway_IsSentAgain(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		var left *fakeConn
		s.do(func() {
			s.hook = func(f *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				switch {
				case left == nil && h.Type == wire.OpCreate2:
					left = f
					f.sendLocked(wire.AppendReply(nil, wire.GoAway(s.zxid), nil))
					return noAnswer
				case left == f:
					return noAnswer
				}
				return serve
			}
		})
		var pending []*Pending[CreateReply]
		for range 3 {
			pending = append(pending, c.Async().Create(t.Context(), "/a-", nil, PersistentSequential))
		}
		for i, p := range pending {
			created, err := p.Wait(t.Context())
			must(t, err)
			if want := fmt.Sprintf("/a-%010d", i); created.Path != want {
				t.Errorf("created %s, want %s", created.Path, want)
			}
		}
	})
}

func TestClient_Get_ReplyLost_SentAgain(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.hook = onFirst(wire.OpGetData, cut) })
		_, _, err := c.Get(t.Context(), "/")
		must(t, err)
		s.do(func() { s.hook = onFirst(wire.OpGetData, cut) })
		// The asynchronous form promises order and leaves it to the caller.
		_, err = c.Async().Get(t.Context(), "/").Wait(t.Context())
		wantErr(t, err, ErrConnectionLoss)
		if errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("a read has an unknown outcome: %v", err)
		}
	})
}

func TestClient_Get_ThatBreaksEveryConnection_Ends(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		tries := 0
		s.do(func() {
			s.hook = func(_ *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				if h.Type == wire.OpGetData {
					tries++
					return cut
				}
				return serve
			}
		})
		_, _, err := c.Get(t.Context(), "/")
		wantErr(t, err, ErrConnectionLoss)
		s.do(func() {
			if tries != maxReadTries {
				t.Errorf("%d tries, want %d", tries, maxReadTries)
			}
		})
	})
}

func TestClient_Set_ContextEnds(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.hook = onFirst(wire.OpSetData, noAnswer) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Set(ctx, "/", nil, AnyVersion)
		wantErr(t, err, ErrOutcomeUnknown, context.DeadlineExceeded)

		// Without a connection nothing is sent, so the outcome is known.
		s.do(func() { s.down = true })
		s.cutAll()
		synctest.Wait()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Set(ctx, "/", nil, AnyVersion)
		wantErr(t, err, context.DeadlineExceeded)
		if errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("error %v, want none of an unknown outcome: it was never sent", err)
		}
		wantEmptyQueue(t, c)
		s.do(func() { s.down = false })
		_, stat, err := c.Get(t.Context(), "/")
		must(t, err)
		if stat.Version != 0 {
			t.Errorf("version %d, want 0: a withdrawn write has happened", stat.Version)
		}
	})
}

// TestClient_Async_CompletionInOrder submits a long row of reads and writes
// while connections break, and checks that operations complete in order, that
// none is lost, and that every write that was reported done has happened once.
func TestClient_Async_CompletionInOrder(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		const n = 400
		s.create("/n", "")
		s.do(func() {
			served := 0
			s.hook = func(_ *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				if served++; served%37 == 0 && h.Type == wire.OpSetData {
					return swallow
				}
				return serve
			}
		})
		var all []interface {
			Done() <-chan struct{}
			finished() error
		}
		for i := range n {
			if i%3 == 0 {
				all = append(all, pendingOf[GetReply]{c.Async().Get(t.Context(), "/n")})
			} else {
				all = append(all, pendingOf[Stat]{
					c.Async().Set(t.Context(), "/n", fmt.Append(nil, i), AnyVersion)})
			}
		}
		done, unknown := 0, 0
		for i, p := range all {
			<-p.Done()
			for _, earlier := range all[:i] {
				select {
				case <-earlier.Done():
				default:
					t.Fatalf("operation %d completed before an earlier one, want them in order", i)
				}
			}
			switch err := p.finished(); {
			case i%3 == 0:
			case err == nil:
				done++
			case errors.Is(err, ErrOutcomeUnknown):
				unknown++
			default:
				t.Fatalf("write %d: %v", i, err)
			}
		}
		_, stat, err := c.Get(t.Context(), "/n")
		must(t, err)
		if v := int(stat.Version); v < done || v > done+unknown {
			t.Errorf("version %d after %d writes and %d unknown ones, want a number between", v, done, unknown)
		}
		if unknown == 0 || done == 0 {
			t.Errorf("%d done, %d unknown: the test is wrong", done, unknown)
		}
	}, WithMaxInFlight(20))
}

func wantEmptyQueue(t *testing.T, c *Client) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue.Len() != 0 || c.used != 0 || c.bytes != 0 || len(c.waiters) != 0 {
		t.Errorf("the queue has %d operations, %d places, %d bytes, %d waiters; want nothing",
			c.queue.Len(), c.used, c.bytes, len(c.waiters))
	}
}

type pendingOf[T any] struct{ *Pending[T] }

func (p pendingOf[T]) finished() error {
	_, err := p.Wait(context.Background())
	return err
}

func TestClient_Queue_BoundHoldsAndIsFair(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.down = true })
		s.cutAll()
		synctest.Wait()
		first := c.Async().Get(t.Context(), "/")
		second := c.Async().Get(t.Context(), "/")
		started := make(chan int, 2)
		for i := range 2 {
			go func() {
				p := c.Async().Get(t.Context(), "/")
				started <- i
				<-p.Done()
			}()
			synctest.Wait()
		}
		if len(started) != 0 {
			t.Fatal("a third operation was accepted, want two")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Async().Get(ctx, "/").Wait(t.Context())
		wantErr(t, err, context.DeadlineExceeded)
		// The server answers one at a time, so that each answer lets one in.
		var held []wire.Xid // with conn the fake's
		var conn *fakeConn
		answer := func() {
			t.Helper()
			synctest.Wait()
			s.do(func() {
				conn.answerLocked(held[0], &wire.GetDataResponse{}, znode.OK)
				held = held[1:]
			})
			synctest.Wait()
		}
		s.do(func() {
			s.down = false
			s.hook = func(c *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				if h.Type != wire.OpGetData {
					return serve
				}
				held, conn = append(held, h.Xid), c
				return noAnswer
			}
		})
		<-time.After(DefaultBackoffMax)
		for want, p := range []*Pending[GetReply]{first, second} {
			answer()
			_, err = p.Wait(t.Context())
			must(t, err)
			if len(started) != 1 {
				t.Fatalf("%d operations were accepted for one that was answered, want 1", len(started))
			}
			if got := <-started; got != want {
				t.Errorf("waiter %d got in, %d was before", got, want)
			}
		}
		answer()
		answer()
		wantEmptyQueue(t, c)
	}, WithMaxInFlight(2))
}
