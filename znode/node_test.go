package znode

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// A million znodes are held at once: a field more would cost 16 bytes each.
func TestNode_Size(t *testing.T) {
	if size := unsafe.Sizeof(node{}); size != 64 {
		t.Errorf("a node takes %d bytes, want 64", size)
	}
	if size := unsafe.Sizeof(rare{}); size != 32 {
		t.Errorf("its rare part takes %d bytes, want 32", size)
	}
}

// The lengths in the blob have one byte to 127, two to 16,383, and three beyond.
func TestNode_SetBlob_KeepsPathAndData(t *testing.T) {
	sizes := []int{1, 2, 125, 126, 127, 128, 16_381, 16_382, 16_383, 16_384, 1 << 20}
	for _, p := range sizes {
		path := "/" + strings.Repeat("p", p-1)
		for _, data := range [][]byte{nil, {}} {
			var n node
			n.setBlob(path, data)
			if got := n.data(); n.path() != path || len(got) != 0 || (got == nil) != (data == nil) || n.size() != 0 {
				t.Errorf("a path of %d bytes, data %#v: data %#v, size %d", p, data, got, n.size())
			}
		}
		for _, d := range sizes {
			data := bytes.Repeat([]byte("d"), d)
			var n node
			n.setBlob(path, data)
			n.setBlob(n.path(), data) // as a set does
			if n.path() != path || !bytes.Equal(n.data(), data) || n.size() != d {
				t.Errorf("a path of %d bytes and %d of data: %d and %d", p, d, len(n.path()), n.size())
			}
		}
	}
}

// A copy is for a snapshot that is being read, or for a rollback.
func TestNode_Copy_SharesNoFields(t *testing.T) {
	n := node{czxid: 7}
	plain := n.copy()
	n.editRare().pzxid = 8
	if plain.readRare() != (rare{pzxid: 7}) {
		t.Errorf("the copy of a plain znode became %+v", plain.readRare())
	}
	before := n.copy()
	n.editRare().pzxid, n.editRare().creates, n.editRare().aversion = 9, 1, 2
	if before.readRare() != (rare{pzxid: 8}) {
		t.Errorf("the copy became %+v", before.readRare())
	}
}

// Writes are refused by the estimate, so it must not be below the tree's memory, and not far above.
func TestTree_Memory(t *testing.T) {
	create := func(tb testing.TB, tree *Tree, x *Txn, r *CreateRequest) {
		x.Reset()
		x.Zxid++
		x.ExtendedTypes = true
		if _, _, code := tree.Create(x, r); code != OK {
			tb.Fatalf("create of %s: %v, want no error", r.Path, code)
		}
	}
	flat := func(n, size int) func(*Tree, *Txn) {
		return func(tree *Tree, x *Txn) {
			for i := range n {
				create(t, tree, x, &CreateRequest{Path: fmt.Sprintf("/n%06d", i), Data: make([]byte, size), ACL: OpenACL})
			}
		}
	}
	for name, fill := range map[string]func(*Tree, *Txn){
		"no data":   flat(50_000, 0),
		"100 bytes": flat(50_000, 100),
		"1,100":     flat(10_000, 1100),
		"100 kB":    flat(200, 100_000),
		"pairs": func(tree *Tree, x *Txn) {
			for i := range 20_000 {
				path := fmt.Sprintf("/n%06d", i)
				create(t, tree, x, &CreateRequest{Path: path, ACL: OpenACL})
				create(t, tree, x, &CreateRequest{Path: path + "/child", ACL: OpenACL})
			}
		},
		"ephemerals": func(tree *Tree, x *Txn) {
			for i := range 30_000 {
				x.Session = SessionID(i/10 + 1)
				create(t, tree, x, &CreateRequest{Path: fmt.Sprintf("/members-%06d", i), ACL: OpenACL, Mode: 1})
			}
		},
		"containers": func(tree *Tree, x *Txn) {
			for i := range 30_000 {
				create(t, tree, x, &CreateRequest{
					Path: fmt.Sprintf("/members-%06d", i), ACL: OpenACL, Kind: CreateContainer,
				})
			}
		},
		"lists of their own": func(tree *Tree, x *Txn) {
			for i := range 20_000 {
				create(t, tree, x, &CreateRequest{Path: fmt.Sprintf("/n%06d", i), ACL: []ACL{
					{PermAll, ID{"digest", fmt.Sprintf("user%06d:0123456789012345678901234567=", i)}},
					{PermRead, ID{"ip", fmt.Sprintf("10.0.%d.%d", i/256, i%256)}},
				}})
			}
		},
	} {
		before := liveHeap()
		tree, x := NewTree(), &Txn{}
		empty := tree.Memory()
		fill(tree, x)
		took := float64(liveHeap() - before)
		estimate := float64(tree.Memory())
		t.Logf("%s: %.0f bytes, %.2f of them estimated", name, took, estimate/took)
		if estimate < took*0.9 || estimate > took*1.8 {
			t.Errorf("%s: the estimate is %.0f bytes for %.0f", name, estimate, took)
		}
		// What is deleted is taken off.
		x.Reset()
		for _, n := range tree.Ephemerals(0, "") {
			t.Errorf("session 0 owns %s, want no ephemeral", n)
		}
		for _, path := range []string{"/n000000", "/members-000000"} {
			if tree.get(path) != nil && tree.get(path).numChildren() == 0 {
				was := tree.Memory()
				if code := tree.Delete(x, path, AnyVersion); code != OK || tree.Memory() >= was {
					t.Errorf("%s: deleting %s: %v; %d bytes, before %d", name, path, code, tree.Memory(), was)
				}
			}
		}
		if tree.Memory() <= empty {
			t.Errorf("%s: %d bytes", name, tree.Memory())
		}
	}
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // memory that a finalizer kept
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
