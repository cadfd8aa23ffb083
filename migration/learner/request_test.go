package learner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
	"github.com/zk-lite/zk-lite/znode"
)

// follower runs a Learner in virtual time against a script, and use while it follows. Both may fail the test.
func follower(t *testing.T, cfg Config, h Handler, script func(s *scripted), use func(l *Learner)) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := pipenet.New()
		host := network.Listen("a:2888")
		defer host.Close()
		cfg.Servers, cfg.ID, cfg.Dial = []string{"a:2888"}, 200, network.Dialer("learner")
		l := New(cfg)
		done := make(chan error)
		go func() { done <- l.Follow(t.Context(), Position{Zxid: at(1)}, h) }()
		c, _ := host.Accept()
		s := newScripted(c)
		serve(s)
		synctest.Wait()
		use(l)
		synctest.Wait()
		script(s)
		c.Close()
		for range s.got {
		}
		err = <-done
	})
	return err
}

// A session id that destroys an ensemble is never sent, whatever the request; others are.
func TestRequest_SessionIDs(t *testing.T) {
	bad := []znode.SessionID{0, -1 << 63, -1 << 56, -1, -1<<56 + 1, -1<<56 | 0x12345}
	good := []znode.SessionID{1, 0x100000000000001, -2 << 56, -1<<56 - 1, 0x7fffffffffffffff, -1<<63 + 1}
	verbs := func(l *Learner) map[string]func(znode.SessionID) error {
		return map[string]func(znode.SessionID) error{
			"Request":    func(id znode.SessionID) error { return l.Request(id, 1, 1, nil, nil) },
			"Sync":       func(id znode.SessionID) error { return l.Sync(id, 1, "/") },
			"Revalidate": func(id znode.SessionID) error { return l.Revalidate(id, 9000) },
			"Touch":      func(id znode.SessionID) error { return l.Touch(id, 9000) },
		}
	}
	err := follower(t, Config{}, &recorder{}, func(s *scripted) {
		s.send(ping, at(1), nil)
		sent := map[znode.SessionID]int{}
		for range 3*len(good) + 1 {
			p := <-s.got
			for r := jute.NewReader(p.data); r.Remaining() >= 8; {
				sent[znode.SessionID(r.Int64())]++
				if p.kind != ping {
					break
				}
				r.Int32()
			}
		}
		for _, id := range good {
			if sent[id] != 4 {
				t.Errorf("the leader got %v %d times, want 4", id, sent[id])
			}
		}
		if len(sent) != len(good) {
			t.Errorf("the leader got the ids %v, want those of %v", sent, good)
		}
	}, func(l *Learner) {
		for name, call := range verbs(l) {
			for _, id := range bad {
				if err := call(id); !errors.Is(err, ErrSessionID) {
					t.Errorf("%s(%v) = %v, want %v", name, id, err, ErrSessionID)
				}
			}
			for _, id := range good {
				if err := call(id); err != nil {
					t.Errorf("%s(%v) = %v, want nil", name, id, err)
				}
			}
		}
	})
	wantError(t, err, io.EOF)
}

// Requests carry what the leader needs, and answers come in order with the transactions.
func TestRequest_AnswersInOrder(t *testing.T) {
	h, r := newHistory(), &recorder{}
	h.create(at(1), "/a")
	var touched []string
	err := follower(t, Config{}, r, func(s *scripted) {
		p := s.expect(request)
		if want := "\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x05\x00\x00\x00\x02record"; string(p.data) != want ||
			!slices.Equal(p.ids, []znode.ID{{Scheme: "ip", ID: "1.2.3.4"}}) {
			t.Errorf("REQUEST of %q by %v, want %q", p.data, p.ids, want)
		}
		if p := s.expect(request); string(p.data[12:]) != "\x00\x00\x00\x09\x00\x00\x00\x02/a" || p.ids != nil {
			t.Errorf("REQUEST of %q, want sync of /a", p.data)
		}
		s.expect(request)
		if p := s.expect(revalidate); string(p.data) != "\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x23\x28" {
			t.Errorf("REVALIDATE of %q", p.data)
		}
		s.expect(revalidate)
		s.inform(h.create(at(2), "/b"))
		s.send(syncPacket, 0, nil)
		s.inform(h.create(at(3), "/c"))
		s.send(revalidate, -1, jute.AppendBool(jute.AppendInt64(nil, 9), true))
		s.inform(h.create(at(4), "/d"))
		s.send(syncPacket, 0, nil)
		s.send(revalidate, -1, jute.AppendBool(jute.AppendInt64(nil, 10), false))
		for range 2 { // a touch counts once
			s.send(ping, at(4), nil)
			touched = append(touched, fmt.Sprintf("%x", s.expect(ping).data))
		}
	}, func(l *Learner) {
		err := errors.Join(
			l.Request(9, 5, 2, []byte("record"), []znode.ID{{Scheme: "ip", ID: "1.2.3.4"}}),
			l.Sync(9, 6, "/a"), l.Sync(10, 1, "/"), l.Revalidate(9, 9000), l.Revalidate(10, 1), l.Touch(9, 9000))
		if err != nil {
			t.Error(err)
		}
	})
	wantError(t, err, io.EOF)
	r.want(t, "leader DIFF", "0x500000002", "synced", "0x500000003", "revalidated 0x9 true", "0x500000004", "synced",
		"revalidated 0xa false")
	if want := []string{"000000000000000900002328", ""}; !slices.Equal(touched, want) {
		t.Errorf("the pings brought %q, want %q", touched, want)
	}
}

// Without a leader nothing is sent, and no touch is kept for the next one.
func TestRequest_NotConnected(t *testing.T) {
	l := New(Config{Servers: []string{"a:2888"}})
	for name, err := range map[string]error{
		"Request": l.Request(9, 1, 1, nil, nil), "Sync": l.Sync(9, 1, "/"), "Revalidate": l.Revalidate(9, 1),
	} {
		if !errors.Is(err, ErrNotConnected) {
			t.Errorf("%s = %v, want %v", name, err, ErrNotConnected)
		}
	}
	if err := l.Touch(9, 1); err != nil || len(l.touch) != 0 {
		t.Errorf("Touch = %v and keeps %v, want nothing", err, l.touch)
	}
}

// A handler that is busy does not keep the leader waiting for the answers to its pings. What arrives meanwhile waits,
// up to a bound; then the handler gets it, and Follow ends.
func TestFollow_SlowHandler(t *testing.T) {
	h := newHistory()
	h.create(at(1), "/a")
	const limit = 4000
	r := &recorder{}
	var l *Learner
	sent := 0
	err := follower(t, Config{MaxQueue: limit}, r, func(s *scripted) {
		defer close(r.block)
		for i := range int64(1000) {
			raw := h.create(at(2+i), fmt.Sprintf("/%d", i))
			if _, err := s.Write((&packet{kind: inform, zxid: at(2 + i), data: raw}).append(nil)); err != nil {
				return
			}
			sent++
			synctest.Wait()
			if l.Status().Server == "" {
				return
			}
			if got := l.Status(); got.Received != at(2+i) || got.Queued > limit {
				t.Errorf("the status is %+v, want %v received and at most %d bytes queued", got, at(2+i), limit)
			}
			s.send(ping, at(2+i), nil)
			s.expect(ping)
			if got := l.Status(); got.Proposed != at(2+i) {
				t.Errorf("the status is %+v, want %v proposed", got, at(2+i))
			}
		}
	}, func(now *Learner) { l, r.block = now, make(chan struct{}) })
	wantError(t, err, ErrBehind)
	if sent < 10 || len(r.calls) != sent {
		t.Errorf("got %d calls after %d transactions, want Leader and all transactions but the last",
			len(r.calls), sent)
	}
}

// A leader that does not read what we send is left in time, and the error says what was being done.
func TestFollow_LeaderDoesNotRead(t *testing.T) {
	err := play(t, Config{Timeout: 7 * time.Second}, Position{Zxid: at(1)}, &recorder{}, func(s *scripted) {
		serve(s)
		defer func() { _ = recover() }()
		for range cap(s.got) + 10 { // more than the reader takes
			s.send(ping, at(1), nil)
		}
		t.Error("the leader sent all of its pings")
	})
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) ||
		!strings.Contains(err.Error(), "writing to the leader") {
		t.Errorf("Follow = %v, want that a write took too long", err)
	}
}

// A synchronization of more than the bound ends with an error that says that a snapshot is needed.
func TestFollow_TooFarBehind(t *testing.T) {
	h := newHistory()
	h.create(at(1), "/a")
	r := &recorder{}
	err := play(t, Config{MaxQueue: 4000}, Position{Zxid: at(1)}, r, func(s *scripted) {
		s.discover()
		s.send(diff, at(1000), nil)
		defer func() { _ = recover() }()
		for i := range int64(1000) {
			s.propose(h.create(at(2+i), fmt.Sprintf("/%d", i)))
		}
	})
	wantError(t, err, ErrFar)
	r.want(t)
}

// A snapshot and a packet above their bounds are refused.
func TestFollow_Bounds(t *testing.T) {
	h := newHistory()
	for i := range int64(9000) {
		h.create(at(1+i), fmt.Sprintf("/%d", i))
	}
	r := &recorder{}
	err := play(t, Config{MaxSnapshot: 300 << 10}, Position{}, r, func(s *scripted) {
		s.discover()
		s.send(snap, at(9000), nil)
		defer func() { _ = recover() }()
		s.write(h.stream())
		t.Error("the learner read all of the snapshot")
	})
	wantError(t, err, ErrProtocol)
	err = play(t, Config{MaxPacket: 100}, Position{Zxid: at(1)}, r, func(s *scripted) {
		begin(s)
		s.send(newLeader, at(0), make([]byte, 101))
	})
	wantError(t, err, ErrProtocol)
	wantError(t, err, jute.ErrTooLong)
	r.want(t)
}

// Follow returns the handler's error, and ends the connection.
func TestFollow_HandlerFails(t *testing.T) {
	h, r := newHistory(), &recorder{fail: errors.New("disk full")}
	h.create(at(1), "/a")
	err := follower(t, Config{}, r, func(s *scripted) {
		s.inform(h.create(at(2), "/b"))
		s.silent()
	}, func(*Learner) {})
	wantError(t, err, r.fail)
}

// The context ends Follow at any moment, and everything that it has started.
func TestFollow_Cancelled(t *testing.T) {
	stop := errors.New("stop")
	for after := range 40 {
		synctest.Test(t, func(t *testing.T) {
			network := pipenet.New()
			host := network.Listen("a:2888")
			ended := make(chan struct{})
			l := New(Config{Servers: []string{"z:1", "a:2888"}, ID: 200, Dial: network.Dialer("learner")})
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Duration(after)*time.Second/10, func() { cancel(stop) })
			go func() {
				defer close(ended)
				c, err := host.Accept()
				if err != nil {
					return
				}
				s := newScripted(slow{c})
				defer func() {
					_ = recover()
					c.Close()
				}()
				h := newHistory()
				speak(s, h, Position{})
				for i := int64(5); ; i++ {
					s.inform(h.create(at(i), fmt.Sprintf("/%d", i)))
				}
			}()
			err := l.Follow(ctx, Position{}, &recorder{})
			wantError(t, err, stop)
			host.Close()
			<-ended
		})
	}
}
