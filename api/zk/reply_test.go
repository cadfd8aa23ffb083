package zk

import (
	"math"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// A request costs no allocation but the text of its path and, for some, a slice of what it reads: decoding goes through
// wire's types, and so do replies, neither of which may reach the heap. The least of many requests is what each costs:
// some are in the sample of the table of usage, which copies their path, and with the race detector a pool forgets every
// fourth thing that it is given.
func TestRequest_WireTypesAreFree(t *testing.T) {
	srv := server.New(server.Config{ID: 1, Tick: time.Second})
	c := newConn(New(srv, Config{}), nowhere{})
	c.sc.Store(srv.NewConn(c, c.identities()))
	var r *request
	read := func(v *server.View) { r.Read(v) }
	stat := znode.Stat{Czxid: 1}
	for _, x := range []struct {
		op     wire.OpCode
		body   wire.Request
		result *state.Result // of a write; nil: a read
		want   float64
	}{
		{wire.OpPing, nil, nil, 0},
		{wire.OpGetData, &wire.GetDataRequest{Path: "/zookeeper"}, nil, 2},
		{wire.OpExists, &wire.ExistsRequest{Path: "/zookeeper"}, nil, 1},
		{wire.OpGetChildren2, &wire.GetChildrenRequest{Path: "/zookeeper"}, nil, 2},
		{wire.OpGetACL, &wire.GetACLRequest{Path: "/zookeeper"}, nil, 2},
		{wire.OpSetData, &wire.SetDataRequest{Path: "/zookeeper"}, &state.Result{Stat: stat}, 1},
		{wire.OpDelete, &wire.DeleteRequest{Path: "/zookeeper"}, &state.Result{}, 1},
		{wire.OpCreate2, &wire.CreateRequest{Path: "/zookeeper", ACL: znode.OpenACL},
			&state.Result{Path: "/zookeeper", Stat: stat}, 1},
		{wire.OpSync, &wire.SyncRequest{Path: "/zookeeper"}, &state.Result{}, 1},
	} {
		frame := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: x.op}, x.body)[wire.FrameLengthBytes:]
		request := func() {
			c.rd.Reset(frame)
			var h wire.RequestHeader
			h.Decode(&c.rd)
			r = c.newRequest(h, len(frame))
			r.quiet = true // nothing is written
			if !r.decode(&c.rd) {
				t.Fatalf("%s cannot be decoded: %v", x.op, c.rd.Err())
			}
			if x.result == nil {
				srv.View(read)
			} else {
				r.result = x.result
				r.answer(nil, x.result)
			}
		}
		least := math.Inf(1)
		for range 100 {
			least = min(least, testing.AllocsPerRun(1, request))
		}
		if least != x.want {
			t.Errorf("%s takes %v allocations, want %v", x.op, least, x.want)
		}
		if c.out.writing {
			t.Errorf("%s has started a writer; want that its reader sends the reply", x.op)
		}
		c.out.flush()
	}
}
