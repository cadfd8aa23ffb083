package znode

import "testing"

// mustCreate creates a znode and returns its path.
func mustCreate(tb testing.TB, t *Tree, x *Txn, r *CreateRequest) string {
	tb.Helper()
	path, _, code := t.Create(x, r)
	if code != OK {
		tb.Fatalf("create %s: %v", r.Path, code.Name())
	}
	return path
}
