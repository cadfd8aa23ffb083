package znode

import (
	"errors"
	"strings"
	"testing"
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
	if err := b.Add(&Record{Path: "/zookeeper", ACL: OpenACL}); err == nil {
		t.Error("a path twice")
	}
	if err := b.Add(&Record{Path: "/no/parent", ACL: OpenACL}); err != nil {
		t.Fatal(err) // it may come later
	}
	if _, err := b.Tree(); err == nil || !strings.Contains(err.Error(), "/no/parent") {
		t.Errorf("an orphan: %v", err)
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
