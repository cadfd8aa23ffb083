package zk_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
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

// A setWatches that was longer than jute.maxbuffer, or set too many watches, was answered with an error. Clients send
// it automatically and report no failure: their users waited for events that never came.
func TestRegression_SetWatches_NeverFailsInSilence(t *testing.T) {
	k := start(t, func(s *serverConfig, _ *zkConfig) { s.WatchLimit = 30_000 })
	paths := make([]string, 30_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/%090d", i)
	}
	c := patient(k)
	c.want(znode.OK, wire.OpSetWatches, &wire.SetWatchesRequest{ExistWatches: paths}) // 2.8 MB
	many := k.connect()
	many.send(wire.OpSetWatches, &wire.SetWatchesRequest{ExistWatches: append(paths, "/one/more")})
	many.closed()
	long := k.connect()
	long.raw([]byte{0x7f, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, byte(wire.OpSetWatches)})
	long.closed()
	k.connect().create(paths[29_999], "")
	c.event(znode.EventCreated, paths[29_999])
}

// setWatches told a client about changes that it had missed, whether it might read the znode or not: by asking for
// changes since one zxid and another, anyone found out when a znode was changed.
func TestRegression_SetWatches_TellsNothingOfWhatMayNotBeRead(t *testing.T) {
	k := start(t)
	owner, c := k.connect(), k.connect()
	owner.auth("digest", "owner:secret")
	for _, path := range []string{"/hidden", "/open"} {
		list := znode.OpenACL
		if path == "/hidden" {
			list = []znode.ACL{{Perms: znode.PermAll, ID: znode.AuthIDs}}
		}
		owner.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: list})
	}
	c.want(znode.OK, wire.OpSync, &wire.SyncRequest{Path: "/"})
	xid := c.send(wire.OpSetWatches, &wire.SetWatchesRequest{
		DataWatches: []string{"/hidden", "/open"}, ExistWatches: []string{"/hidden"}, ChildWatches: []string{"/hidden", "/gone"},
	})
	c.event(znode.EventDataChanged, "/open")
	c.event(znode.EventDeleted, "/gone")
	c.reply(xid, wire.OpSetWatches)
}
