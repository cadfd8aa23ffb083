package replica_test

import (
	"bytes"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// A state is the same after it has been written and read, and so are its bytes and its digest.
func TestReplica_RoundTrip(t *testing.T) {
	r := replica.New(znode.NewTree(), session.NewTable(), 0)
	x := new(znode.Txn)
	apply := func(txn *replica.Txn) {
		t.Helper()
		if err := r.Apply(x, txn, false); err != nil {
			t.Fatalf("Apply(%v) = %v", txn.Op, err)
		}
	}
	open := znode.OpenACL
	digest := []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: "a:b"}}}
	apply(&replica.Txn{Session: 0x100, Zxid: 1, Change: replica.Change{Op: replica.OpCreateSession, Timeout: 9000}})
	apply(&replica.Txn{Zxid: 2, Time: 5, Change: replica.Change{Op: replica.OpCreate, Path: "/a", ACL: digest, Creates: 1}})
	apply(&replica.Txn{Session: 0x100, Zxid: 3, Time: 6, Change: replica.Change{
		Op: replica.OpCreate2, Path: "/a/é", ACL: open, Data: []byte{}, Ephemeral: true, Creates: 7}})
	apply(&replica.Txn{Zxid: 4, Change: replica.Change{Op: replica.OpCreateTTL, Path: "/ttl", ACL: open, TTL: 77, Creates: 2}})
	apply(&replica.Txn{Zxid: 5, Change: replica.Change{Op: replica.OpCreateContainer, Path: "/c", ACL: open, Creates: -1}})
	apply(&replica.Txn{Zxid: 6, Change: replica.Change{Op: replica.OpSetData, Path: "/c", Data: []byte("x"), Version: 1}})

	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatalf("Write: %v", err)
	}
	back, err := replica.Read(jute.NewStream(bytes.NewReader(b.Bytes()), replica.MaxField), r.Zxid)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	var again bytes.Buffer
	if err := back.Write(&again); err != nil || !bytes.Equal(again.Bytes(), b.Bytes()) {
		t.Errorf("written again: error %v, bytes are equal: %v", err, bytes.Equal(again.Bytes(), b.Bytes()))
	}
	if !back.DigestIs(r.Digest()) {
		t.Errorf("digest %x, want %x", back.Digest(), r.Digest())
	}
	stat, code := back.Tree.Exists("/a", []znode.ID{znode.SuperIDs})
	if want := (znode.Stat{Czxid: 2, Mzxid: 2, Pzxid: 3, Ctime: 5, Mtime: 5, Cversion: 13, NumChildren: 1}); code != znode.OK || stat != want {
		t.Errorf("/a has %+v, %v, want %+v", stat, code, want)
	}
}
