package rest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// Bytes that the other end has not taken are visible until it has: of a connection of package net, and of one as
// servers accept them, which is not a *net.TCPConn.
func TestTaken(t *testing.T) {
	t.Run("net", func(t *testing.T) { testTaken(t, func(l net.Listener) net.Listener { return l }) })
	t.Run("socket", func(t *testing.T) { testTaken(t, rawconn.Listener) })
}

func testTaken(t *testing.T, wrap func(net.Listener) net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := wrap(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r = r.WithContext(context.WithValue(r.Context(), connKey{}, conn))
	if !Taken(r, 0) {
		t.Error("nothing was sent, and nothing is missing")
	}
	wait.Until(t, "more than is taken, since nobody reads", func() bool {
		conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		if sent, err := io.CopyN(conn, zeros{}, 64<<20); err == nil {
			t.Fatalf("%d bytes were sent to nobody", sent)
		}
		return !Taken(r, 0)
	})
	if !Taken(r, time.Hour) {
		t.Error("something was acknowledged within the hour")
	}
	go func() { _, _ = io.Copy(io.Discard, client) }()
	wait.Until(t, "nothing to be missing, since all was read", func() bool { return Taken(r, 0) })
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
