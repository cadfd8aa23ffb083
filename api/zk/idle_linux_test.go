package zk_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// readers is how many connections have a goroutine that reads.
func readers() int {
	all := make([]byte, 1<<20)
	return bytes.Count(all[:runtime.Stack(all, true)], []byte("zk.(*conn).requests("))
}

func (k *kit) allWait() {
	k.t.Helper()
	k.eventually("the connections to give their goroutines back", func() bool { return readers() == 0 })
}

// longMillis is the timeout of a session whose client says nothing for a while, on a machine that stalls.
const longMillis = 40_000

// A connection without requests waits without a goroutine, also between pings, and is as before for its client.
func TestListener_IdleConnection_HasNoGoroutine(t *testing.T) {
	k := start(t, neverHurried)
	connect := func() *client {
		return k.dial().connect(wire.ConnectRequest{TimeoutMillis: longMillis, HasReadOnly: true})
	}
	idle, leaving, hangsUp, closes, loses := connect(), connect(), connect(), connect(), connect()
	k.allWait()

	for range 1000 { // some come at the moment when the connection begins to wait
		idle.reply(idle.ping(), wire.OpPing)
	}
	k.allWait()
	frame := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpGetData},
		&wire.GetDataRequest{Path: "/", Watch: true})
	idle.xid = 1
	idle.raw(frame[:5])
	k.eventually("the reader of half a frame", func() bool { return readers() == 1 })
	idle.raw(frame[5:])
	if h, _ := idle.reply(1, wire.OpGetData); h.Err != znode.OK {
		t.Fatalf("get: %s", h.Err.Name())
	}
	k.allWait()

	loses.want(znode.OK, wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: znode.AnyVersion})
	idle.event(znode.EventDataChanged, "/") // while it waits

	moved := k.dial().connect(wire.ConnectRequest{
		TimeoutMillis: longMillis, SessionID: loses.id, Password: loses.password, HasReadOnly: true,
	})
	loses.closed()
	hangsUp.c.Close()
	closes.close()
	k.eventually("three to be gone", func() bool { return k.listener.Totals().Connections == 3 })
	wait := k.leave()
	for _, c := range []*client{idle, leaving, moved} {
		c.goAway()
	}
	wait()
}

// ping sends one.
func (c *client) ping() wire.Xid {
	c.t.Helper()
	c.raw(wire.AppendRequest(nil, wire.RequestHeader{Xid: wire.XidPing, Type: wire.OpPing}, nil))
	return wire.XidPing
}
