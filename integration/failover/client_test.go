//go:build slow || privileged

package failover_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// cutOff is the longest that a client may keep its connection: the 40 s of a write without progress, and a margin for a
// busy machine. Most are cut off sooner.
const cutOff = 50 * time.Second

// TestFailover_BadClients: a client that does not read, one that sends nothing and one that sends nonsense lose their
// own connections; the writers beside them notice nothing.
func TestFailover_BadClients(t *testing.T) {
	e := start(t, 3, cluster.Options{
		Config: map[string]string{"limits.outboxBytes": "1MiB"}})
	l := startLoad(t, e, "/bad")
	s := e.Followers()[0]
	c := s.Connect(t, cluster.ConnectOptions{})
	mustCreate(t, c, "/large", bytes.Repeat([]byte("x"), 900_000))
	t.Run("clients", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *cluster.Server){
			"does not read replies": doesNotReadReplies, "does not read events": doesNotReadEvents,
			"says nothing": saysNothing, "stops in a frame": stopsInFrame,
			"says nonsense": saysNonsense, "claims a huge frame": claimsHugeFrame,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
	})
	l.waitProgress(20)
	l.checkKept()
	_, single := l.gap(time.Time{})
	t.Logf("the longest that a writer waited: %v", single)
	if single > generousGap {
		t.Errorf("a writer waited %v", single)
	}
	l.check()
	e.CheckReplicas()
}

// rawSession opens a session on a socket that no one reads afterwards.
func rawSession(t *testing.T, s *cluster.Server, timeout time.Duration) (*net.TCPConn, znode.SessionID) {
	t.Helper()
	nc := rawDial(t, s)
	if err := nc.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	b, mark := wire.BeginFrame(nil)
	b = (&wire.ConnectRequest{TimeoutMillis: int32(timeout.Milliseconds()),
		Password: make([]byte, znode.PasswordSize)}).Append(b)
	wire.EndFrame(b, mark)
	rawWrite(t, nc, b)
	answer := make([]byte, 40) // a response of 36 bytes and its length
	if _, err := nc.Read(answer); err != nil {
		t.Fatal(err)
	}
	return nc, znode.SessionID(binary.BigEndian.Uint64(answer[12:]))
}

func rawDial(t *testing.T, s *cluster.Server) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc.(*net.TCPConn)
}

func rawWrite(t *testing.T, nc net.Conn, b []byte) {
	t.Helper()
	if _, err := nc.Write(b); err != nil {
		t.Fatalf("writing: %v", err)
	}
}

// waitGone waits until the server no longer lists a connection.
func waitGone(t *testing.T, s *cluster.Server, local string) {
	t.Helper()
	begin := time.Now()
	wait.Within(t, "the server closes the connection", cutOff, func() error {
		text, err := s.FourLetter("cons")
		if err == nil && strings.Contains(text, local+"[") {
			err = fmt.Errorf("cons lists %s", local)
		}
		return err
	})
	t.Logf("closed after %v", time.Since(begin))
}

// doesNotReadReplies asks for more than the buffers hold and never reads.
func doesNotReadReplies(t *testing.T, s *cluster.Server) {
	nc, _ := rawSession(t, s, 2*time.Second)
	var b []byte
	for i := range 100 {
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(i + 1), Type: wire.OpGetData},
			&wire.GetDataRequest{Path: "/large"})
	}
	rawWrite(t, nc, b)
	waitGone(t, s, nc.LocalAddr().String())
}

// doesNotReadEvents watches everything, keeps sending pings, and never reads. Its long session timeout must not help
// it.
func doesNotReadEvents(t *testing.T, s *cluster.Server) {
	nc, _ := rawSession(t, s, 10*time.Second)
	rawWrite(t, nc, wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpAddWatch},
		&wire.AddWatchRequest{Path: "/events", Mode: wire.AddWatchPersistentRecursive}))
	c := s.Connect(t, cluster.ConnectOptions{})
	mustCreate(t, c, "/events", nil)
	long := "/events/" + strings.Repeat("n", 4000)
	mustCreate(t, c, long, nil)
	var calls []*cluster.Call
	for range 2000 { // 8 MB of events
		calls = append(calls, c.Send(wire.OpSetData, &wire.SetDataRequest{Path: long, Version: -1}))
	}
	for _, call := range calls {
		if _, err := call.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	waitGone(t, s, nc.LocalAddr().String())
}

func saysNothing(t *testing.T, s *cluster.Server) {
	nc := rawDial(t, s)
	waitGone(t, s, nc.LocalAddr().String())
}

func stopsInFrame(t *testing.T, s *cluster.Server) {
	nc := rawDial(t, s)
	rawWrite(t, nc, []byte{0, 0, 0, 44, 0, 0})
	waitGone(t, s, nc.LocalAddr().String())
}

func saysNonsense(t *testing.T, s *cluster.Server) {
	nc := rawDial(t, s)
	rawWrite(t, nc, []byte("GET / HTTP/1.1\r\nHost: zookeeper\r\n\r\n"))
	waitGone(t, s, nc.LocalAddr().String())
}

func claimsHugeFrame(t *testing.T, s *cluster.Server) {
	nc, _ := rawSession(t, s, 10*time.Second)
	rawWrite(t, nc, []byte{0x7f, 0xff, 0xff, 0xff})
	waitGone(t, s, nc.LocalAddr().String())
}
