package mux

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
)

var testEnsemble = [16]byte{1, 2, 3}

// newTestMux makes a mux on the network; it is closed with the test.
func newTestMux(t *testing.T, f *pipenet.Network, addr string, id uint64) *Mux {
	t.Helper()
	m := New(Config{Listener: f.Listen(addr), Dial: f.Dialer(addr)})
	if id != NoServer {
		m.SetIdentity(testEnsemble, id)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// A stranger that sends nothing, or half a hello, loses its connection after the hello's timeout, and
// a dialler does not wait longer for an answer.
func TestMux_Hello_SlowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		newTestMux(t, f, "a", 1)
		for _, said := range []string{"", "zkL"} {
			raw, err := f.Dialer("b")(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if said != "" {
				raw.Write([]byte(said))
			}
			start := time.Now()
			if _, err := raw.Read(make([]byte, 1)); err != io.EOF {
				t.Fatalf("read %v, want the end", err)
			}
			if d := time.Since(start); d != DefaultHelloTimeout {
				t.Fatalf("ended after %v, want %v", d, DefaultHelloTimeout)
			}
		}
		mute := f.Listen("mute")
		defer mute.Close()
		b := newTestMux(t, f, "b", 2)
		start := time.Now()
		if _, err := b.Dial(t.Context(), KindControl, "mute", NoServer); err == nil {
			t.Fatal("a mute server answered")
		}
		if d := time.Since(start); d != DefaultHelloTimeout {
			t.Fatalf("gave up after %v, want %v", d, DefaultHelloTimeout)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		_, err := b.Dial(ctx, KindControl, "mute", NoServer)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Fatalf("with a context of 1 s: %v after %v", err, time.Since(start))
		}
	})
}

// lockedBuffer collects log lines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The failure detector's probe leaves no trace at info level, garbage leaves one warning a minute.
func TestMux_Hello_LogsOnlyWhatMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		var log lockedBuffer
		m := New(Config{
			Listener: f.Listen("a"), Dial: f.Dialer("a"),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		defer m.Close()
		for range 3 {
			probe, err := f.Dialer("b")(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			clock.Sleep(10 * time.Millisecond)
			probe.Close()
		}
		synctest.Wait()
		if log.String() != "" {
			t.Fatalf("a probe was logged: %s", log.String())
		}
		for range 3 {
			c, err := f.Dialer("b")(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			c.Write([]byte("stat\nstat\n"))
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Fatalf("garbage was answered: %v", err)
			}
			c.Close()
			clock.Sleep(10 * time.Second)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "no valid hello"); n != 1 {
			t.Fatalf("%d warnings about garbage within a minute, want 1: %s", n, log.String())
		}
	})
}

func TestMux_CutRaft_BothDirections(t *testing.T) {
	for _, kind := range []Kind{KindRaft, KindAppend, KindSnapshot} {
		t.Run(kind.String(), func(t *testing.T) { testCutRaft(t, kind) })
	}
}

func testCutRaft(t *testing.T, kind Kind) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		a, b := newTestMux(t, f, "a", 1), newTestMux(t, f, "b", 2)
		dial := func(from *Mux, to string) (net.Conn, error) {
			return from.DialMember(kind, to, time.Second)
		}
		accept := func(m *Mux) net.Conn {
			c, err := m.Accept(kind)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		out, err := dial(a, "b")
		if err != nil {
			t.Fatal(err)
		}
		outFar := accept(b)
		inFar, err := dial(b, "a")
		if err != nil {
			t.Fatal(err)
		}
		in := accept(a)
		stream, err := a.Dial(t.Context(), KindStream, "b", 2)
		if err != nil {
			t.Fatal(err)
		}
		streamFar, err := b.Accept(KindStream)
		if err != nil {
			t.Fatal(err)
		}

		a.CutRaft()
		for _, c := range []net.Conn{out, outFar, in, inFar} {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Fatal("a raft connection survived the cut")
			}
		}
		if _, err := dial(a, "b"); !errors.Is(err, errRaftCut) {
			t.Fatalf("dialling while cut: %v", err)
		}
		_, err = dial(b, "a")
		var refusal *RefusedError
		if !errors.As(err, &refusal) || refusal.Code != RefusedCut {
			t.Fatalf("being dialled while cut: %v", err)
		}
		go stream.Write([]byte("x"))
		if _, err := streamFar.Read(make([]byte, 1)); err != nil {
			t.Fatalf("a stream did not survive: %v", err)
		}
		a.RestoreRaft()
		if _, err := dial(a, "b"); err != nil {
			t.Fatalf("dialling after RestoreRaft: %v", err)
		}
		if _, err := dial(b, "a"); err != nil {
			t.Fatalf("being dialled after RestoreRaft: %v", err)
		}
	})
}

// Close ends everything that the mux holds: both ends, queued, awaiting its hello, dialling; and nothing leaks, or
// synctest would complain.
func TestMux_Close_EndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		a, b := newTestMux(t, f, "a", 1), newTestMux(t, f, "b", 2)
		mute := f.Listen("mute")
		defer mute.Close()
		out, err := a.Dial(t.Context(), KindStream, "b", 2)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Dial(t.Context(), KindControl, "a", 1); err != nil {
			t.Fatal(err)
		}
		silent, err := f.Dialer("c")(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		dialled, accepted := make(chan error, 1), make(chan error, 2)
		go func() {
			_, err := a.Dial(context.Background(), KindStream, "mute", NoServer)
			dialled <- err
		}()
		go func() { _, err := a.Accept(KindStream); accepted <- err }()
		go func() { _, err := a.Accept(KindRaft); accepted <- err }()
		synctest.Wait()

		start := time.Now()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatalf("closing twice: %v", err)
		}
		if err := <-dialled; err == nil {
			t.Fatal("a dial ended well after Close")
		}
		for range 2 {
			if err := <-accepted; !errors.Is(err, net.ErrClosed) {
				t.Fatalf("Accept after Close: %v", err)
			}
		}
		if _, err := out.Write([]byte("x")); err == nil {
			t.Fatal("an outbound connection survived")
		}
		if _, err := silent.Read(make([]byte, 1)); err == nil {
			t.Fatal("a connection that awaits its hello survived")
		}
		if _, err := a.Dial(t.Context(), KindControl, "b", 2); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("dialling after Close: %v", err)
		}
		if d := time.Since(start); d != 0 {
			t.Fatalf("closing took %v", d)
		}
	})
}

func TestMux_SetIdentity_NeverChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMux(t, pipenet.New(), "a", 1)
		m.SetIdentity(testEnsemble, 1)
		defer func() {
			if recover() == nil {
				t.Fatal("the identity of a server changed")
			}
		}()
		m.SetIdentity(testEnsemble, 2)
	})
}
