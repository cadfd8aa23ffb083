package znode

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// freezeSubtree reads a random subtree of this moment while the writer continues: as copies or from a snapshot, as super
// user or as a client without identities.
func (h *randomRun) freezeSubtree() {
	m, read := h.model.clone(), h.read
	s := &Subtree{root: h.path(), granted: map[aclID]grantedACL{}}
	n := h.tree.get(s.root)
	if n == nil {
		return
	}
	if h.r.IntN(2) == 0 {
		s.ids = []ID{super}
	}
	if h.r.IntN(2) == 0 {
		s.copy(h.tree, n)
	} else {
		s.freeze(h.tree, 0)
	}
	h.frozen.Go(func() {
		<-read
		defer s.Release()
		if err := s.equals(m); err != nil {
			h.t.Error(err)
		}
	})
}

// equals compares a subtree with what the model has there.
func (s *Subtree) equals(m *model) error {
	s.List()
	for _, path := range m.sorted(s.root, s.ids) {
		r, ok := s.Next()
		if !ok || r.Path != path {
			return fmt.Errorf("below %s: got %q, want %q", s.root, r.Path, path)
		}
		want := m.nodes[path]
		if readable := m.allowed(path, PermRead, s.ids); r.Hidden == readable {
			return fmt.Errorf("%s is hidden: %v, want %v", path, r.Hidden, !readable)
		} else if !readable {
			continue
		}
		if r.Stat != m.statOf(path) || !bytes.Equal(r.Data, want.data) || (r.Data == nil) != (want.data == nil) {
			return fmt.Errorf("%s: got %q %+v, want %q %+v", path, r.Data, r.Stat, want.data, m.statOf(path))
		}
		if acl := want.acl; m.allowed(path, PermAdmin, s.ids) && !slices.Equal(r.ACL, acl) {
			return fmt.Errorf("%s: ACL %v, want %v", path, r.ACL, acl)
		}
	}
	if r, ok := s.Next(); ok {
		return fmt.Errorf("below %s: got %q, want the end", s.root, r.Path)
	}
	return nil
}

// sorted are the paths that a client sees of a subtree: those below a znode that it may not read are not among them.
func (m *model) sorted(root string, ids []ID) (paths []string) {
	if root == RootPath {
		root = ""
	}
	name := root
	if name == "" {
		name = RootPath
	}
	paths = []string{name}
	if m.allowed(name, PermRead, ids) {
		for _, child := range m.children(name) {
			paths = append(paths, m.sorted(root+"/"+child, ids)...)
		}
	}
	return paths
}

// A large subtree keeps its moment whatever the writer does, and what it kept alive is free afterwards; a small one
// keeps no snapshot.
func TestSubtree_LargeAndSmall(t *testing.T) {
	tree, x := NewTree(), &Txn{Zxid: 1}
	for i := range smallZnodes {
		mustCreate(t, tree, x, &CreateRequest{Path: fmt.Sprintf("/%05d", i), Data: []byte("old"), ACL: OpenACL})
	}
	if s, code := tree.Subtree("/", nil, true); s != nil || code != OK {
		t.Errorf("a large subtree without a snapshot: %v, error %v, want none", s, code.Name())
	}
	if _, code := tree.Subtree("/none", nil, false); code != ErrNoNode {
		t.Errorf("error %v, want %v", code.Name(), ErrNoNode.Name())
	}
	small, _ := tree.Subtree("/00000", nil, true)
	if n := tree.snapshots.Load(); small == nil || n != 0 {
		t.Fatalf("a small subtree is %v and has %d snapshots, want 0", small, n)
	}
	large, _ := tree.Subtree("/", nil, false)
	for i := range smallZnodes {
		path := fmt.Sprintf("/%05d", i)
		if i%2 == 0 {
			tree.Delete(x, path, AnyVersion)
		} else if _, code := tree.SetData(x, path, []byte("new"), AnyVersion); code != OK {
			t.Fatalf("setting %s: error %v, want none", path, code.Name())
		}
	}
	for _, s := range []*Subtree{small, large} {
		s.List()
		n := 0
		for r, ok := s.Next(); ok; r, ok = s.Next() {
			if n++; string(r.Data) != "old" && !strings.HasPrefix(r.Path, SystemPath) && r.Path != RootPath {
				t.Fatalf("%s has %q, want old", r.Path, r.Data)
			}
		}
		if znodes, _ := s.Size(); n != znodes {
			t.Errorf("%d znodes, want %d", n, znodes)
		}
		s.Release()
	}
	if n := tree.snapshots.Load(); n != 0 {
		t.Errorf("%d snapshots after the release, want 0", n)
	}
}

// What is written while a subtree is read is counted once for each znode, until it is too much.
func TestSubtree_IsOutgrown(t *testing.T) {
	tree, zxid := NewTree(), Zxid(0)
	set := func(path string, data []byte) {
		zxid++
		x := &Txn{Zxid: zxid, Identities: []ID{super}}
		_, code := tree.SetData(x, path, data, AnyVersion)
		if code == ErrNoNode {
			_, _, code = tree.Create(x, &CreateRequest{Path: path, Data: data, ACL: OpenACL})
		}
		if code != OK {
			t.Fatalf("set of %s: %v, want no error", path, code)
		}
	}
	const size, count = 1 << 20, keptBytes>>20 + 8
	all := func() {
		for i := range count {
			set(fmt.Sprintf("/%d", i), make([]byte, size))
		}
	}
	all()
	s, code := tree.Subtree("/", nil, false)
	if code != OK {
		t.Fatalf("reading /: %v, want no error", code)
	}
	for range 2 * count {
		set("/0", make([]byte, size))
	}
	if s.Outgrown() {
		t.Error("one znode was replaced, and the subtree is outgrown")
	}
	if all(); !s.Outgrown() {
		t.Errorf("%d MB were replaced, and the subtree is not outgrown", count)
	}
	s.Release()
	fresh, _ := tree.Subtree("/", nil, false)
	if fresh.Outgrown() {
		t.Error("a subtree is outgrown at once")
	}
	fresh.Release()
}
