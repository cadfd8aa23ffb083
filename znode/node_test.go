package znode

import (
	"bytes"
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
