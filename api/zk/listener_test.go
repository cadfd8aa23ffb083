package zk_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func TestListener_Session_EveryOperation(t *testing.T) {
	c := start(t).connect()
	if p := c.create("/a", "x"); p != "/a" {
		t.Fatalf("created %q, want /a", p)
	}
	get := wantOK[*wire.GetDataResponse](c, wire.OpGetData, &wire.GetDataRequest{Path: "/a", Watch: true})
	if string(get.Data) != "x" || get.Stat.Version != 0 {
		t.Fatalf("got %+v, want data x of version 0", get)
	}
	xid := c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("y"), Version: 0})
	c.event(znode.EventDataChanged, "/a")
	if h, _ := c.reply(xid, wire.OpSetData); h.Err != znode.OK {
		t.Fatalf("reply %+v, want OK", h)
	}
	kids := wantOK[*wire.GetChildrenResponse](c, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"})
	if len(kids.Children) != 2 {
		t.Fatalf("children %q, want 2", kids.Children)
	}
	c.fence()
	c.want(znode.OK, wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: 1})
	c.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/a"})
	c.close()
}

// Clients once took every descriptor of the process, and no one could ask for the server's
// health, nor did the other servers reach it.
func TestListener_Descriptors_LastOnesAreForWords(t *testing.T) {
	pool := process.NewDescriptors(16) // 11 for clients
	said := &lines{}
	k := start(t, logTo(said), func(_ *serverConfig, z *zkConfig) { z.Descriptors = pool.Clients })
	clients := make([]*client, 11)
	for i := range clients {
		clients[i] = k.connect()
	}
	for range 40 {
		c := k.dial()
		connect := wire.ConnectRequest{TimeoutMillis: briskMillis, Password: make([]byte, 16)}
		_, _ = c.c.Write(frame(connect.Append(nil)))
		if p, err := c.frames.Next(); err == nil {
			t.Fatalf("a client beyond the limit was answered: % x", p)
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a client beyond the limit was left waiting")
		}
		if text := k.word("ruok"); text != "imok" {
			t.Fatalf("ruok: %q", text)
		}
	}
	if n := pool.Refused(); n != 40 {
		t.Errorf("%d are counted as refused, want 40", n)
	}
	if text := said.String(); strings.Count(text, "client refused") != 1 || !strings.Contains(text, process.DescriptorLimit) {
		t.Errorf("want one line that names the limit: %s", text)
	}
	clients[0].close()
	k.eventually("there is room again", func() bool { return k.listener.Totals().Connections < len(clients) })
	k.connect()
}
