package znode

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// TestBuilder_BadRecords: what no tree can be made of is refused.
func TestBuilder_BadRecords(t *testing.T) {
	system := func() *Builder {
		b := NewBuilder()
		s := NewTree().Snapshot()
		defer s.Release()
		if err := s.Walk(b.Add); err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := system()
	if err := b.Add(&Record{Path: "/x/", ACL: OpenACL}); !errors.Is(err, ErrBadArguments) {
		t.Errorf("bad path: %v", err)
	}
	for _, path := range []string{"/zookeeper", "/no/parent"} {
		b := system()
		if err := b.Add(&Record{Path: path, ACL: OpenACL}); err != nil {
			t.Fatal(err) // the other may come later
		}
		if _, err := b.Tree(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s, which is there twice or has no parent: error %v, want one that names it", path, err)
		}
	}
	if _, err := NewBuilder().Tree(); err == nil {
		t.Error("a tree without a root")
	}
	stop := errors.New("stop")
	s := NewTree().Snapshot()
	defer s.Release()
	if err := s.Walk(func(*Record) error { return stop }); err != stop {
		t.Error(err)
	}
}

// TestBuilder_Batches: a tree that is linked in several batches, with parents that come after their children, is the
// same as before.
func TestBuilder_Batches(t *testing.T) {
	rnd := seed.Rand(t)
	tree, x, paths := NewTree(), &Txn{}, []string{""}
	for i := range 2*linkBatch + 100 {
		x.Zxid++
		parent := paths[rnd.IntN(len(paths))]
		r := &CreateRequest{Path: parent + "/n" + strconv.Itoa(i), Data: make([]byte, rnd.IntN(9)), ACL: OpenACL}
		if i%3 == 0 {
			r.ACL = []ACL{{PermCreate, Anyone}, {PermRead, ID{"ip", "10.0.0." + strconv.Itoa(i%9)}}}
		}
		if i%10 == 0 {
			r.Mode, x.Session = Ephemeral, SessionID(i%7+1)
		} else {
			paths = append(paths, r.Path)
		}
		mustCreate(t, tree, x, r)
	}
	checkRebuilt(t, tree)
}

// TestSnapshot_Rollback_KeepsItsMoment: a znode that a snapshot shows, deleted
// and brought back by a rollback, is edited afterwards. The edit must go to a
// copy.
func TestSnapshot_Rollback_KeepsItsMoment(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1}
	mustCreate(t, tree, x, &CreateRequest{Path: "/a", Data: []byte("old"), ACL: OpenACL})
	s := tree.Snapshot()
	defer s.Release()
	tree.Begin(x)
	if code := tree.Delete(x, "/a", AnyVersion); code != OK {
		t.Fatalf("delete of /a: %v, want no error", code)
	}
	tree.Rollback(x)
	x.Zxid++
	if _, code := tree.SetData(x, "/a", []byte("new"), AnyVersion); code != OK {
		t.Fatalf("set of /a: %v, want no error", code)
	}
	_ = s.Walk(func(r *Record) error {
		if r.Path == "/a" && (string(r.Data) != "old" || r.Stat.Version != 0 || r.Stat.Mzxid != 1) {
			t.Errorf("the snapshot shows %q %+v", r.Data, r.Stat)
		}
		return nil
	})
}
