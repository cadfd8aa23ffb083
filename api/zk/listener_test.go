package zk_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func TestListener_Session_EveryOperation(t *testing.T) {
	c := start(t).connect()
	if p := c.create("/a", "x"); p != "/a" {
		t.Fatal(p)
	}
	get := ok[*wire.GetDataResponse](c, wire.OpGetData, &wire.GetDataRequest{Path: "/a", Watch: true})
	if string(get.Data) != "x" || get.Stat.Version != 0 {
		t.Fatalf("%+v", get)
	}
	xid := c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("y"), Version: 0})
	c.event(znode.EventDataChanged, "/a")
	if h, _ := c.reply(xid, wire.OpSetData); h.Err != znode.OK {
		t.Fatal(h)
	}
	kids := ok[*wire.GetChildrenResponse](c, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"})
	if len(kids.Children) != 2 {
		t.Fatal(kids)
	}
	c.fence()
	c.want(znode.OK, wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: 1})
	c.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/a"})
	c.close()
}
