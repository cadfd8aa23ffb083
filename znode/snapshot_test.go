package znode

import "testing"

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
