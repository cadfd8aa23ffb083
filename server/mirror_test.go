package server

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// zookeeper is the state of an ensemble to mirror: a session of 5 s with an ephemeral, an emptied container and a
// znode with a TTL of 1 ms.
func zookeeper(tb testing.TB, zxid znode.Zxid) *replica.Replica {
	tb.Helper()
	r := replica.New(znode.NewTree(), session.NewTable(), zxid-6)
	for i, c := range []replica.Change{
		{Op: replica.OpCreateSession, Timeout: 5000},
		{Op: replica.OpCreate, Path: "/ephemeral", ACL: znode.OpenACL, Ephemeral: true, Creates: -1},
		{Op: replica.OpCreateContainer, Path: "/container", ACL: znode.OpenACL, Creates: -1},
		{Op: replica.OpCreate, Path: "/container/x", ACL: znode.OpenACL, Creates: -1},
		{Op: replica.OpDelete, Path: "/container/x"},
		{Op: replica.OpCreateTTL, Path: "/ttl", ACL: znode.OpenACL, TTL: 1, Creates: -1},
	} {
		t := &replica.Txn{Session: 0x77, Zxid: zxid - 5 + znode.Zxid(i), Time: 1, Change: c}
		if err := r.Apply(new(znode.Txn), t, false); err != nil {
			tb.Fatalf("preparing a state: %v", err)
		}
	}
	return r
}

// mirror makes the server's state a copy of r.
func (k *kit) mirror(r *replica.Replica) {
	k.tb.Helper()
	var b bytes.Buffer
	if err := state.WriteMirrored(&b, r); err != nil {
		k.tb.Fatal(err)
	}
	step := func(s state.MirrorStep, data []byte, x state.RestoreCommand) {
		k.log.from(1, &state.Command{Op: state.OpMirror, Mirror: s, Term: 1, Data: data, Restore: x})
	}
	step(state.MirrorStart, []byte("source"), state.RestoreCommand{})
	step(state.MirrorPart, b.Bytes(), state.RestoreCommand{Upload: 1})
	step(state.MirrorLoad, nil, state.RestoreCommand{Upload: 1, Part: 1, Sum: xxhash.Sum64(b.Bytes())})
	k.srv.View(func(v *View) {
		if x, is := v.Machine().Mirror(); !is || !x.Loaded || x.Zxid != r.Zxid {
			k.tb.Fatalf("the state mirrors %+v, %v; want a copy as of %v", x, is, r.Zxid)
		}
	})
}

// ZooKeeper's servers decide which sessions expire and which znodes are deleted, while the state is a copy of theirs;
// after that each session has its full timeout, also under a new leader.
func TestServer_Mirror_LeavesSessionsAndContainersAlone(t *testing.T) {
	for _, elected := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k := reapKit(t, nil)
			k.mirror(zookeeper(t, 5<<32|7))
			if elected {
				k.srv.Handler().Lead(1)
			}
			all := map[string]bool{"/ephemeral": true, "/container": true, "/ttl": true}
			k.until(time.Minute)
			if got := k.log.pending(); len(got) > 0 {
				t.Errorf("proposed while it mirrors: %v, want nothing", got)
			}
			if got := k.srv.SessionDeadlines(); len(got) > 0 {
				t.Errorf("sessions that would expire while it mirrors: %v, want none", got)
			}
			k.expectPaths("while it mirrors", all)

			k.log.from(1, &state.Command{Op: state.OpMirror, Mirror: state.MirrorStop})
			k.until(4 * time.Second)
			k.expectPaths("4 s after the end", map[string]bool{"/ephemeral": true})
			k.until(20 * time.Second)
			k.expectPaths("24 s after the end", map[string]bool{"/ephemeral": false, "/container": false, "/ttl": false})
		})
	}
}

// A stream gets what differs when a state is loaded. If that has lower zxids, it learns that its place is lost.
func TestServer_Mirror_Streams(t *testing.T) {
	for term, want := range map[uint64]error{1: nil, 9: changes.ErrTooOld} {
		k := newKit(t, nil)
		k.log.term = term
		k.log.from(1, &state.Command{Op: state.OpCreate, Path: "/mine", ACL: znode.OpenACL})
		k.log.from(1, &state.Command{Op: state.OpDelete, Path: "/mine", Version: -1})
		all := []changes.Filter{{Path: "/", Kind: changes.KindRecursive}}
		stream, err := k.srv.Subscribe(all, changes.Position{Zxid: znode.Zxid(term<<32 | 2)})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		k.log.term = 1
		k.mirror(zookeeper(t, 5<<32|7))
		got, err := stream.Next(t.Context())
		if !errors.Is(err, want) || want == nil && (len(got) != 3 || got[0].Path != "/container" || got[0].At.Zxid != 5<<32|7) {
			t.Errorf("after term %d: %+v, error %v; want %v, or /container, /ephemeral and /ttl", term, got, err, want)
		}
		later, err := k.srv.Subscribe(all, changes.Position{Zxid: 5<<32 | 7})
		if err != nil {
			t.Errorf("after term %d, a stream from then on: %v, want no error", term, err)
			continue
		}
		later.Close()
	}
}

// While the tree is full, transactions that add to it are refused before they are in the log, and others are not.
func TestServer_Mirror_FullTree(t *testing.T) {
	k := newKit(t, nil)
	zk := zookeeper(t, 5<<32|7)
	k.mirror(zk)
	k.log.setLimit(k.srv.Memory().Bytes)
	follow := func(txn []byte) znode.Error {
		c := &state.Command{Op: state.OpMirror, Mirror: state.MirrorFollow, Term: 1, Data: state.AppendTxn(nil, txn)}
		return k.srv.admission.check(c)
	}
	header := func(op replica.Op) []byte {
		b := jute.AppendInt64(jute.AppendInt32(jute.AppendInt64(nil, 0x77), 1), int64(zk.Zxid+1))
		return jute.AppendInt32(jute.AppendInt64(b, 1), int32(op))
	}
	set := func(size int) []byte {
		b := jute.AppendBuffer(jute.AppendUstring(header(replica.OpSetData), "/ttl"), make([]byte, size))
		return jute.AppendInt32(b, 1)
	}
	if got := follow(set(1000)); got != znode.ErrSystem {
		t.Errorf("more data: %v, want %v", got, znode.ErrSystem)
	}
	if got := follow(jute.AppendUstring(header(replica.OpDelete), "/ttl")); got != znode.OK {
		t.Errorf("a delete: %v, want %v", got, znode.OK)
	}
	k.log.setLimit(k.srv.Memory().Bytes + 10_000)
	if got := follow(set(1000)); got != znode.OK {
		t.Errorf("more data when there is room: %v, want %v", got, znode.OK)
	}
}
