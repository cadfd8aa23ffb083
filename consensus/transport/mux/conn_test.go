package mux

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
)

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
			// A minute later the deadline of the hello must no longer matter.
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
