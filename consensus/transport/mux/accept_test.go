package mux

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
)

// A server refuses connections for HTTP before its listener is open and after it is closed.
func TestMux_ListenHTTP_WhileItIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		a, b := newTestMux(t, f, "a", 1), newTestMux(t, f, "b", 2)
		refused := func() {
			t.Helper()
			_, err := a.Dial(t.Context(), KindHTTP, "b", 2)
			var refusal *RefusedError
			if !errors.As(err, &refusal) || refusal.Code != RefusedKind {
				t.Fatalf("%v, want %v", err, RefusedKind)
			}
		}
		refused()
		l := b.ListenHTTP()
		if _, err := a.Dial(t.Context(), KindHTTP, "b", 2); err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if id := c.(*Conn).ServerID(); id != 1 {
			t.Fatalf("a connection of server %d, want server 1", id)
		}
		ended := make(chan error)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Fatalf("a closed listener returns %v, want net.ErrClosed", err)
		}
		refused()
	})
}

func TestMux_Accept_QueueBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		a, b := newTestMux(t, f, "a", 1), newTestMux(t, f, "b", 2)
		for range maxQueue {
			if _, err := b.Dial(t.Context(), KindStream, "a", 1); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.Dial(t.Context(), KindStream, "a", 1)
		var refusal *RefusedError
		if !errors.As(err, &refusal) || refusal.Code != RefusedBusy {
			t.Fatalf("one more than the queue holds: %v", err)
		}
		if _, err := b.Dial(t.Context(), KindControl, "a", 1); err != nil {
			t.Fatalf("another kind has its own queue: %v", err)
		}
		if _, err := a.Accept(KindStream); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Dial(t.Context(), KindStream, "a", 1); err != nil {
			t.Fatalf("after one was accepted: %v", err)
		}
	})
}

// Strangers that send nothing held every place for five seconds: an election was held up for 30 s by 300 of them. The
// one that has waited longest gives way now, and a server sends its hello at once.
func TestRegression_SilentStrangers_DoNotKeepServersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		m := newTestMux(t, f, "a", 1)
		b := newTestMux(t, f, "b", 2)
		var silent []net.Conn
		for i := range 3 * maxHellos {
			c, err := f.Dialer("c")(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			silent = append(silent, c)
			synctest.Wait()
			if i%maxHellos != 0 {
				continue
			}
			start := time.Now()
			if _, err := b.Dial(t.Context(), KindControl, "a", 1); err != nil || time.Since(start) > 0 {
				t.Fatalf("beside %d silent strangers a server was let in after %v, %v", i+1, time.Since(start), err)
			}
		}
		if _, err := silent[0].Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the oldest of too many: %v, want the end", err)
		}
		m.mu.Lock()
		if n := m.awaiting.Len(); n > maxHellos {
			t.Errorf("%d hellos are awaited, at most %d may be", n, maxHellos)
		}
		m.mu.Unlock()
		m.Close()
	})
}

// strangerC is a Guard to which c is a stranger.
type strangerC struct{ Credulous }

func (strangerC) Stranger(c net.Conn) bool { return c.RemoteAddr().String() == "c" }

// With a join secret, or while a token was out, strangers could ask whether they are let in, and held for three seconds
// each the places that raft's connections need.
func TestRegression_Strangers_TakeNoMembersPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		m := New(Config{Listener: f.Listen("a"), Dial: f.Dialer("a"), Guard: strangerC{}})
		m.SetIdentity(testEnsemble, 1)
		defer m.Close()
		b, c := newTestMux(t, f, "b", 2), newTestMux(t, f, "c", 3)
		ask := func() *Conn {
			t.Helper()
			asks, err := c.Dial(t.Context(), KindControl, "a", 1)
			if err != nil {
				t.Fatal(err)
			}
			return asks
		}
		ended := func(c *Conn) bool {
			synctest.Wait()
			_ = c.SetReadDeadline(time.Now())
			_, err := c.Read(make([]byte, 1))
			return errors.Is(err, io.EOF)
		}
		proved := ask()
		known, err := m.Accept(KindControl)
		if err != nil {
			t.Fatal(err)
		}
		known.Known()
		first := ask()
		for range maxInbound {
			ask()
			synctest.Wait()
			for len(m.queues[KindControl]) > maxStrangers { // served at last
				if x, err := m.Accept(KindControl); err == nil {
					defer x.Close()
				}
			}
		}
		if !ended(first) || ended(proved) {
			t.Errorf("the first stranger has ended: %v; one that has proved to be a member: %v", ended(first), ended(proved))
		}
		all := []Kind{KindRaft, KindControl, KindStream, KindAppend}
		for _, kind := range all {
			if _, err := b.Dial(t.Context(), kind, "a", 1); err != nil {
				t.Errorf("a member's %v connection: %v", kind, err)
			}
		}
		known.Close()
		m.mu.Lock()
		if m.inbound != len(all) || m.strangers.Len() != maxStrangers {
			t.Errorf("%d members, %d strangers", m.inbound, m.strangers.Len())
		}
		m.mu.Unlock()
	})
}
