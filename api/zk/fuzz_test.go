package zk_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// everyRequest is a frame of each kind of request.
func everyRequest() [][]byte {
	acl := append(one(znode.PermAll, "auth", ""), znode.OpenACL...)
	var all [][]byte
	add := func(op wire.OpCode, body wire.Request) {
		all = append(all, wire.AppendRequest(nil, wire.RequestHeader{Xid: 7, Type: op}, body))
	}
	for _, op := range []wire.OpCode{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer} {
		add(op, &wire.CreateRequest{Path: "/f", Data: []byte("x"), ACL: acl, Mode: 2})
	}
	add(wire.OpCreateTTL, &wire.CreateTTLRequest{
		Path: "/t", ACL: znode.OpenACL, Mode: znode.PersistentTTL, TTLMillis: 1})
	add(wire.OpDelete, del("/f"))
	add(wire.OpExists, &wire.ExistsRequest{Path: "/f", Watch: true})
	add(wire.OpGetData, &wire.GetDataRequest{Path: "/", Watch: true})
	add(wire.OpSetData, set("/f"))
	add(wire.OpGetACL, &wire.GetACLRequest{Path: "/"})
	add(wire.OpSetACL, &wire.SetACLRequest{Path: "/f", ACL: acl, Version: -1})
	add(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/", Watch: true})
	add(wire.OpGetChildren2, &wire.GetChildrenRequest{Path: "/", Watch: true})
	add(wire.OpSync, &wire.SyncRequest{Path: "/"})
	add(wire.OpPing, nil)
	add(wire.OpCheck, &wire.CheckRequest{Path: "/"})
	add(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		op(wire.OpCreate, create("/m", "", 0)), op(wire.OpDelete, del("/m")),
		op(wire.OpSetData, set("/")), op(wire.OpCheck, &wire.CheckRequest{Path: "/"}),
	}})
	add(wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: []wire.MultiOp{
		op(wire.OpGetData, &wire.GetDataRequest{Path: "/"}),
		op(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"}),
	}})
	joining, members := "server.4=h:1:2:observer;3,", "server.1=[::1]:1:2\nweight.1=2"
	add(wire.OpReconfig, &wire.ReconfigRequest{JoiningServers: &joining, LeavingServers: &joining})
	add(wire.OpReconfig, &wire.ReconfigRequest{NewMembers: &members})
	add(wire.OpCheckWatches, &wire.RemoveWatchesRequest{Path: "/", Type: 3})
	add(wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: "/", Type: 3})
	add(wire.OpDeleteContainer, &wire.DeleteContainerRequest{Path: "/c"})
	add(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte("u:p")})
	add(wire.OpSASL, &wire.SASLRequest{Token: []byte{1}})
	add(wire.OpSetWatches, &wire.SetWatchesRequest{DataWatches: []string{"/"}})
	add(wire.OpSetWatches2, &wire.SetWatches2Request{PersistentWatches: []string{"/"}})
	add(wire.OpGetEphemerals, &wire.GetEphemeralsRequest{PrefixPath: "/"})
	add(wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: "/"})
	add(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: 1})
	add(wire.OpFeed, &wire.FeedRequest{Path: "/", Before: true})
	add(wire.OpBranch, &wire.BranchRequest{
		If:   []znode.Condition{{Path: "/", Of: znode.OfChildren, Is: znode.Less, Number: 5}},
		Then: []wire.MultiOp{op(wire.OpGetData, &wire.GetDataRequest{Path: "/"}), op(wire.OpSetData, set("/"))},
		Else: []wire.MultiOp{op(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"})},
	})
	add(wire.OpSyncWithin, &wire.SyncWithinRequest{MaxStale: 1})
	add(wire.OpTree, &wire.TreeRequest{Paths: []string{"/", "/zookeeper"}, ID: 1})
	add(wire.OpTree, &wire.TreeRequest{ID: 1, Subtree: 1, Place: 1})
	add(wire.OpRevisions, &wire.RevisionsRequest{Path: "/", Limit: 3})
	add(wire.OpWhoAmI, nil)
	add(wire.OpCloseSession, nil)
	return all
}

// FuzzListener_Session sends bytes after a handshake. The server must not panic, must answer with whole frames, must
// close the connection in the end, and must keep serving others.
func FuzzListener_Session(f *testing.F) {
	var all []byte
	for _, b := range everyRequest() {
		f.Add(b)
		all = append(all, b...)
	}
	f.Add(all)
	f.Add(all[:len(all)-3])
	k := start(f, enabled)
	witness := k.connect()
	if err := witness.c.SetDeadline(noDeadline); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzed := *k
		fuzzed.t = t
		c := fuzzed.dial().connect(wire.ConnectRequest{TimeoutMillis: 200})
		exchange(t, c, b)
		witness.t = t
		witness.fence()
	})
}

// FuzzListener_FirstBytes sends bytes as a connection's first: handshakes and
// four-letter words.
func FuzzListener_FirstBytes(f *testing.F) {
	for _, w := range []string{"ruok", "stmk\x00\x00\x00\x00\x00\x00\x00\x01", "stmk", "mntr", "stat",
		"envi", "conf", "dump", "cons", "wchp", "wchc", "\xff\xf4\xff\xfd", "isro\n"} {
		f.Add([]byte(w))
	}
	for _, q := range []wire.ConnectRequest{
		{Password: make([]byte, 16)}, {HasReadOnly: true}, {SessionID: 5, Password: []byte("x")},
		{LastZxidSeen: 1 << 50, Password: make([]byte, 16)},
	} {
		b := frame(q.Append(nil))
		f.Add(b)
		f.Add(append(b, everyRequest()[6]...))
		f.Add(b[:len(b)-1])
	}
	k := start(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzed := *k
		fuzzed.t = t
		c := fuzzed.dial()
		if _, err := c.c.Write(b); err != nil {
			return // closed meanwhile, which is an answer
		}
		if err := c.c.(*net.TCPConn).CloseWrite(); err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, c.c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection is not closed")
		}
	})
}

// exchange sends b, ends its side, and reads whole frames to the end.
func exchange(t *testing.T, c *client, b []byte) {
	t.Helper()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(c.c, bytes.NewReader(b)); err != nil {
			return // the server has closed the connection already
		}
		_ = c.c.(*net.TCPConn).CloseWrite()
	}()
	for {
		p, err := c.frames.Next()
		if err != nil {
			if err == io.ErrUnexpectedEOF || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection does not end well: %v", err)
			}
			break
		}
		if len(p) < wire.ReplyHeaderBytes {
			t.Errorf("a frame of %d bytes", len(p))
		}
	}
	<-sent
	c.c.Close()
}
