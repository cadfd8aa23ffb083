package mux

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
)

// A server that serves no HTTP says so, before its listener is there and when it is closed.
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
		if c, err := l.Accept(); err != nil || c.(*Conn).ServerID() != 1 {
			t.Fatal(c, err)
		}
		ended := make(chan error)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
		refused()
	})
}
