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

func TestMux_Dial_Table(t *testing.T) {
	other := [16]byte{9}
	none := [16]byte{}
	for _, c := range []struct {
		name     string
		acceptor uint64 // id, 0: not formed
		kind     Kind
		ensemble [16]byte
		from, to uint64
		code     RefusalCode // 0: admitted
	}{
		{"raft", 1, KindRaft, testEnsemble, 2, 1, 0},
		{"raft to anybody", 1, KindRaft, testEnsemble, 2, NoServer, 0},
		{"raft to server 0", 0, KindRaft, testEnsemble, 2, 0, 0},
		{"raft of server 0", 1, KindRaft, testEnsemble, 0, 1, 0},
		{"append", 1, KindAppend, testEnsemble, 2, 1, 0},
		{"stream", 1, KindStream, testEnsemble, 2, 1, 0},
		{"control", 1, KindControl, testEnsemble, 2, 1, 0},
		{"control of a newcomer", 1, KindControl, none, NoServer, NoServer, 0},
		{"control to a newcomer", NoServer, KindControl, testEnsemble, 2, NoServer, 0},
		{"control among newcomers", NoServer, KindControl, none, NoServer, NoServer, 0},
		{"raft to a newcomer", NoServer, KindRaft, testEnsemble, 2, 1, RefusedNotFormed},
		{"append to a newcomer", NoServer, KindAppend, testEnsemble, 2, 1, RefusedNotFormed},
		{"stream to a newcomer", NoServer, KindStream, testEnsemble, 2, NoServer, RefusedNotFormed},
		{"control to a newcomer by id", NoServer, KindControl, none, NoServer, 5, RefusedNotFormed},
		{"raft of another ensemble", 1, KindRaft, other, 2, 1, RefusedEnsemble},
		{"raft of no ensemble", 1, KindRaft, none, 2, 1, RefusedEnsemble},
		{"stream of no ensemble", 1, KindStream, none, 2, 1, RefusedEnsemble},
		{"control of another ensemble", 1, KindControl, other, 2, NoServer, RefusedEnsemble},
		{"raft to another server", 1, KindRaft, testEnsemble, 2, 3, RefusedServer},
		{"control to another server", 1, KindControl, testEnsemble, 2, 3, RefusedServer},
		{"raft of nobody", 1, KindRaft, testEnsemble, NoServer, 1, RefusedMalformed},
		{"HTTP", 1, KindHTTP, testEnsemble, 2, 1, 0},
		{"HTTP of another ensemble", 1, KindHTTP, other, 2, 1, RefusedEnsemble},
		{"unknown kind", 1, 7, testEnsemble, 2, 1, RefusedMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := pipenet.New()
				m := newTestMux(t, f, "a", c.acceptor)
				m.ListenHTTP()
				raw, err := f.Dialer("b")(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				defer raw.Close()
				h := hello{kind: c.kind, ensemble: c.ensemble, from: c.from, to: c.to}
				if _, err := raw.Write(h.append(nil)); err != nil {
					t.Fatal(err)
				}
				err = readAnswer(raw)
				var refusal *RefusedError
				errors.As(err, &refusal)
				if c.code == 0 && err != nil || c.code != 0 &&
					(refusal == nil || refusal.Code != c.code || refusal.Reason == "") {
					t.Fatalf("answer %v, want code %d", err, c.code)
				}
				if c.code != 0 {
					if _, err := raw.Read(make([]byte, 1)); err != io.EOF {
						t.Fatalf("after the refusal: %v, want the end", err)
					}
					return
				}
				got, err := m.Accept(c.kind)
				if err != nil {
					t.Fatal(err)
				}
				if got.ServerID() != c.from || got.Kind() != c.kind {
					t.Fatalf("accepted %v of server %d", got.Kind(), got.ServerID())
				}
			})
		})
	}
}

func TestMux_Dial_Converses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		a, b := newTestMux(t, f, "a", 1), newTestMux(t, f, "b", 2)
		for _, kind := range []Kind{KindStream, KindControl} {
			out, err := a.Dial(t.Context(), kind, "b", 2)
			if err != nil {
				t.Fatal(err)
			}
			in, err := b.Accept(kind)
			if err != nil {
				t.Fatal(err)
			}
			// A minute later the deadline of the hello must not matter any more.
			clock.Sleep(time.Minute)
			go out.Write([]byte("ping"))
			buf := make([]byte, 4)
			if _, err := io.ReadFull(in, buf); err != nil || string(buf) != "ping" {
				t.Fatalf("%v: read %q, %v", kind, buf, err)
			}
			if id := in.ServerID(); id != 1 {
				t.Fatalf("%v: accepted from server %d, want 1", kind, id)
			}
		}
		_, err := a.Dial(t.Context(), KindStream, "b", 3)
		var refusal *RefusedError
		if !errors.As(err, &refusal) || refusal.Code != RefusedServer || refusal.Addr != "b" {
			t.Fatalf("wrong server: %v", err)
		}
	})
}

func TestMux_Dial_BeforeIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		a := newTestMux(t, f, "a", NoServer)
		newTestMux(t, f, "b", 2)
		if _, err := a.Dial(t.Context(), KindStream, "b", NoServer); !errors.Is(err, errNoIdentity) {
			t.Fatalf("stream before SetIdentity: %v", err)
		}
		if _, err := a.Dial(t.Context(), KindControl, "b", 2); err != nil {
			t.Fatalf("control before SetIdentity: %v", err)
		}
		if _, err := a.Dial(t.Context(), 9, "b", 2); err == nil {
			t.Fatal("an unknown kind was dialled")
		}
	})
}

// A stranger that says nothing, or only half, loses its connection after the hello's timeout, and
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

func TestMux_CutRaft_BothDirections(t *testing.T) {
	for _, kind := range []Kind{KindRaft, KindAppend} {
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

// Close ends whatever the mux holds: both ends, queued, awaiting its hello, dialling; and nothing leaks, or
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

// A leader that died while a follower was answering on the only connection between the two ended
// that connection in a failed write and a close, without any read failing. The failure detector
// saw reads only, and the election waited for raft's timeout.
func TestRegression_ConnectionEndsInWrite_IsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipenet.New()
		a, b := newTestMux(t, f, "a", 1), newTestMux(t, f, "b", 2)
		reports := 0
		b.SetRaft(func(string) uint64 { return 0 }, func() { reports++ })
		out, err := a.DialMember(KindRaft, "b", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		in, err := b.Accept(KindRaft)
		if err != nil {
			t.Fatal(err)
		}
		out.Close()
		if _, err := in.Write([]byte("answer")); err == nil {
			t.Fatal("wrote to a closed connection")
		}
		in.Close()
		if _, err := in.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
			t.Logf("read after close: %v", err)
		}
		if reports != 1 {
			t.Fatalf("%d reports of one ended connection, want 1", reports)
		}
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
