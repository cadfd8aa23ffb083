package zk_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// pipes is a listener whose connections are pipes, so that time in the bubble passes for them.
type pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.dialled <- theirs
	return ours
}

const (
	period        = 500 * time.Millisecond
	patientMillis = 10_000
)

// patiently runs a test in a bubble, 17 ms after a time at which pings are answered, with n sessions of this timeout.
func patiently(t *testing.T, n int, timeoutMillis int32, test func(t *testing.T, k *kit, clients []*client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		k := startOn(t, p)
		var clients []*client
		for range n {
			q := wire.ConnectRequest{TimeoutMillis: timeoutMillis, HasReadOnly: true}
			clients = append(clients, k.over(p.dial()).connect(q))
		}
		clock.Sleep(period - time.Duration(time.Now().UnixNano())%period + 17*time.Millisecond)
		test(t, k, clients)
	})
}

// Pings that come at different times are answered at the same, within the period.
func TestPongs_GoOutTogether(t *testing.T) {
	patiently(t, 12, patientMillis, func(t *testing.T, _ *kit, clients []*client) {
		want := time.Now().Add(period - 17*time.Millisecond)
		for _, c := range clients {
			c.send(wire.OpPing, nil)
			clock.Sleep(10 * time.Millisecond)
		}
		for i, c := range clients {
			c.reply(wire.XidPing, wire.OpPing)
			if now := time.Now(); !now.Equal(want) {
				t.Errorf("client %d has its answer after %v, want it at the same time as all others", i, now.Sub(want))
			}
		}
		c := clients[0] // it goes on like this
		c.send(wire.OpPing, nil)
		c.reply(wire.XidPing, wire.OpPing)
		if now := time.Now(); !now.Equal(want.Add(period)) {
			t.Errorf("the next answer came %v after the last, want %v", now.Sub(want), period)
		}
	})
}

// A client whose session lasts a short time only has its answer at once.
func TestPongs_ShortSession_DoesNotWait(t *testing.T) {
	patiently(t, 12, patientMillis-1, func(t *testing.T, _ *kit, clients []*client) {
		begin := time.Now()
		for _, c := range clients {
			c.fence()
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("pings were answered after %v", d)
		}
	})
}

// What follows a ping waits for nothing, and is answered after it: another ping, a read, a write, whether it came with
// the ping or later.
func TestPongs_NextRequest_DoesNotWait(t *testing.T) {
	patiently(t, 12, patientMillis, func(t *testing.T, _ *kit, clients []*client) {
		begin := time.Now()
		writer, reader, twice, both := clients[0], clients[1], clients[2], clients[3]
		for _, c := range clients[:3] {
			c.send(wire.OpPing, nil)
			synctest.Wait()
		}
		xid := writer.send(wire.OpCreate, create("/a", "", znode.Persistent))
		writer.reply(wire.XidPing, wire.OpPing)
		writer.reply(xid, wire.OpCreate)
		xid = reader.send(wire.OpExists, &wire.ExistsRequest{Path: "/a", Watch: true})
		reader.reply(wire.XidPing, wire.OpPing)
		reader.reply(xid, wire.OpExists)
		twice.send(wire.OpPing, nil) // its answer waits, but the first one's does not
		twice.reply(wire.XidPing, wire.OpPing)
		ping := wire.AppendRequest(nil, wire.RequestHeader{Xid: wire.XidPing, Type: wire.OpPing}, nil)
		both.raw(wire.AppendRequest(ping, wire.RequestHeader{Xid: 7, Type: wire.OpExists}, &wire.ExistsRequest{Path: "/a"}))
		both.reply(wire.XidPing, wire.OpPing)
		both.reply(7, wire.OpExists)
		reader.send(wire.OpPing, nil)
		synctest.Wait()
		writer.want(znode.OK, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})
		reader.event(znode.EventDataChanged, "/a") // events do not wait for the answer
		if d := time.Since(begin); d != 0 {
			t.Errorf("it took %v", d)
		}
		reader.reply(wire.XidPing, wire.OpPing)
		twice.reply(wire.XidPing, wire.OpPing)
		if d := time.Since(begin); d != period-17*time.Millisecond {
			t.Errorf("pings were answered after %v", d)
		}
	})
}

// A client that takes nothing keeps nobody waiting, and one that has gone neither.
func TestPongs_StuckClient_KeepsNobodyWaiting(t *testing.T) {
	patiently(t, 12, patientMillis, func(t *testing.T, _ *kit, clients []*client) {
		begin := time.Now()
		for _, c := range clients {
			c.send(wire.OpPing, nil)
		}
		synctest.Wait()
		clients[1].c.Close()
		for _, c := range clients[2:] { // and the first does not read
			c.reply(wire.XidPing, wire.OpPing)
		}
		if d := time.Since(begin); d != period-17*time.Millisecond {
			t.Errorf("pings were answered after %v", d)
		}
	})
}

// A client that closes its sending side behind a ping still has its answer, as from ZooKeeper.
func TestPongs_EndOfInput_Answers(t *testing.T) {
	k := start(t)
	c := k.dial().connect(wire.ConnectRequest{TimeoutMillis: patientMillis, HasReadOnly: true})
	c.send(wire.OpPing, nil)
	if err := c.c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.reply(wire.XidPing, wire.OpPing)
	c.closed()
}

// Only so many wait.
func TestPongs_AreBounded(t *testing.T) {
	const most = 256
	patiently(t, most+1, patientMillis, func(t *testing.T, _ *kit, clients []*client) {
		for _, c := range clients {
			c.send(wire.OpPing, nil)
			synctest.Wait()
		}
		begin := time.Now()
		clients[most].reply(wire.XidPing, wire.OpPing)
		if d := time.Since(begin); d != 0 {
			t.Errorf("with %d others that wait, an answer took %v", most, d)
		}
		for _, c := range clients[:most] {
			c.reply(wire.XidPing, wire.OpPing)
		}
		if d := time.Since(begin); d != period-17*time.Millisecond {
			t.Errorf("pings were answered after %v", d)
		}
	})
}

// A server that stops answers those that wait.
func TestPongs_Shutdown_Answers(t *testing.T) {
	patiently(t, 12, patientMillis, func(t *testing.T, k *kit, clients []*client) {
		for _, c := range clients {
			c.send(wire.OpPing, nil)
		}
		synctest.Wait()
		go func() { _ = k.door.Shutdown(t.Context()) }()
		for _, c := range clients {
			c.reply(wire.XidPing, wire.OpPing)
			c.closed()
		}
	})
}
