package changes

import (
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// kit is a tree with its lock; a Feed gets its changes.
type kit struct {
	tb   testing.TB
	feed *Feed

	mu   sync.RWMutex // the view lock
	tree *znode.Tree
	zxid znode.Zxid
}

func newKit(tb testing.TB) *kit {
	k := &kit{tb: tb, tree: znode.NewTree()}
	k.feed = NewFeed(func(visit func(znode.Zxid)) {
		k.mu.RLock()
		defer k.mu.RUnlock()
		visit(k.zxid)
	}, make(chan struct{}), DefaultWindow)
	return k
}

// edit is a part of a transaction.
type edit func(*znode.Tree, *znode.Txn) znode.Error

// do makes each edit a transaction.
func (k *kit) do(edits ...edit) {
	k.tb.Helper()
	for _, e := range edits {
		k.mu.Lock()
		k.zxid++
		x := &znode.Txn{Zxid: k.zxid, Identities: []znode.ID{znode.SuperIDs}}
		if code := e(k.tree, x); code != znode.OK {
			k.tb.Fatalf("change: %v, want OK", code)
		}
		for i := range x.Events {
			k.feed.Add(&x.Events[i])
		}
		k.mu.Unlock()
	}
}

func made(path string) edit { return createWith(path, znode.OpenACL) }

func createWith(path string, acl []znode.ACL) edit {
	return func(t *znode.Tree, x *znode.Txn) znode.Error {
		_, _, code := t.Create(x, &znode.CreateRequest{Path: path, ACL: acl})
		return code
	}
}

func changed(path string) edit {
	return func(t *znode.Tree, x *znode.Txn) znode.Error {
		_, code := t.SetData(x, path, nil, znode.AnyVersion)
		return code
	}
}

func gone(path string) edit {
	return func(t *znode.Tree, x *znode.Txn) znode.Error { return t.Delete(x, path, znode.AnyVersion) }
}

// together is several edits in one transaction.
func together(edits ...edit) edit {
	return func(t *znode.Tree, x *znode.Txn) znode.Error {
		for _, e := range edits {
			if code := e(t, x); code != znode.OK {
				return code
			}
		}
		return znode.OK
	}
}
