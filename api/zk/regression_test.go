package zk_test

import (
	"io"
	"net"
	"strings"
	"testing"
)

// A client that sends a four-letter word and closes its sending side at once,
// as `nc -q` does, got no answer: the reader saw the end of the stream and
// closed the connection before the writer had sent anything.
func TestListener_HalfClosedClient_GetsItsAnswer(t *testing.T) {
	k := start(t)
	for range 200 {
		c, err := net.Dial("tcp", k.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "ruok"); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "imok") {
			t.Fatalf("answer %q, error %v", answer, err)
		}
		_ = c.Close()
	}
}
