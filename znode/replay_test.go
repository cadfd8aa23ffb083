package znode

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// The digest that a Replay keeps is always that of the tree, also while a snapshot of the tree is being read, which
// keeps what it has.
func TestReplay_KeepsTheDigest(t *testing.T) {
	rnd := seed.Rand(t)
	for round := range 20 {
		tree := NewTree()
		r := NewReplay(tree)
		var held *Snapshot
		var frozen uint64
		for i := range 400 {
			if held == nil && rnd.IntN(10) == 0 {
				held = tree.Snapshot()
				frozen = held.Digest()
			}
			x := &Txn{Zxid: Zxid(i + 1), TimeMillis: int64(i), Session: SessionID(1 + rnd.IntN(3))}
			what := randomReplay(rnd, r, x)
			fresh := NewReplay(tree)
			if fresh.Digest() != r.Digest() || !r.DigestIs(fresh.digests[1]) {
				t.Fatalf("round %d, step %d, %s: digests %#x, want %#x", round, i, what, r.digests, fresh.digests)
			}
			if held != nil && held.Digest() != frozen {
				t.Fatalf("round %d, step %d, %s: the snapshot has changed", round, i, what)
			}
			if held != nil && rnd.IntN(20) == 0 {
				held.Release()
				held = nil
			}
		}
		checkRebuilt(t, tree)
	}
}

// randomReplay makes a random change, which may fail.
func randomReplay(rnd *rand.Rand, r *Replay, x *Txn) string {
	names := []string{"a", "b", "é", "zookeeper/quota"}
	path := "/" + names[rnd.IntN(len(names))]
	for range rnd.IntN(3) {
		path += "/" + names[rnd.IntN(3)]
	}
	data := [][]byte{nil, {}, []byte("data"), make([]byte, 300)}[rnd.IntN(4)]
	own := []ACL{{Perms: PermAll, ID: ID{"ip", fmt.Sprintf("10.0.0.%d", rnd.IntN(3))}}}
	acl := [][]ACL{OpenACL, ReadACL, own, nil}[rnd.IntN(4)]
	switch op := rnd.IntN(7); op {
	case 0, 1, 2:
		c := &CreateRequest{Path: path, Data: data, ACL: acl, TTL: int64(rnd.IntN(9))}
		c.Kind = []CreateKind{CreatePlain, CreateContainer, CreateTTL}[rnd.IntN(3)]
		if c.Kind == CreatePlain && rnd.IntN(2) == 0 {
			c.Mode = Ephemeral
		}
		creates := int32(rnd.IntN(20) - 1)
		return fmt.Sprintf("Create(%+v, %d) = %v", c, creates, r.Create(x, c, creates))
	case 3:
		return fmt.Sprintf("SetData(%s) = %v", path, r.SetData(x, path, data, Version(rnd.IntN(9))))
	case 4:
		return fmt.Sprintf("SetACL(%s) = %v", path, r.SetACL(path, acl, Version(rnd.IntN(9))))
	case 5:
		r.Recount(x)
		return "Recount"
	default:
		return fmt.Sprintf("Delete(%s) = %v", path, r.Delete(x, path))
	}
}

// checkRebuilt compares a tree with one that is built of its records: sizes, owners, memory.
func checkRebuilt(t *testing.T, tree *Tree) {
	t.Helper()
	b := NewBuilder()
	snap := tree.Snapshot()
	defer snap.Release()
	if err := snap.Walk(b.Add); err != nil {
		t.Fatal(err)
	}
	again, err := b.Tree()
	if err != nil {
		t.Fatal(err)
	}
	s := again.Snapshot()
	defer s.Release()
	if b.Digest() != snap.Digest() || s.Digest() != snap.Digest() || again.Size() != tree.Size() || again.Memory() != tree.Memory() {
		t.Errorf("built of its records the tree has digest %#x (%#x on the way), size %+v, memory %d; want %#x, %+v, %d",
			s.Digest(), b.Digest(), again.Size(), again.Memory(), snap.Digest(), tree.Size(), tree.Memory())
	}
	if got, want := again.root(), tree.root(); got != want {
		t.Errorf("built of its records the tree has %d znodes with %d bytes below the root, want %d and %d", got.znodes,
			got.bytes, want.znodes, want.bytes)
	}
	err = snap.Walk(func(r *Record) error {
		got, want := again.get(r.Path), tree.get(r.Path)
		znodes, bytes := got.below()
		wantZnodes, wantBytes := want.below()
		if got.stat() != want.stat() || znodes != wantZnodes || bytes != wantBytes {
			return fmt.Errorf("%+v, with %d znodes of %d bytes below; want %+v, %d, %d", got.stat(), znodes, bytes,
				want.stat(), wantZnodes, wantBytes)
		}
		if p := again.parentOf(r.Path); p != nil && p.childList()[got.slot] != got {
			return errors.New("another znode has its place among the children")
		}
		return nil
	})
	if err != nil {
		t.Errorf("built of its records the tree has another %v", err)
	}
}

type below struct {
	znodes int
	bytes  int64
}

func (t *Tree) root() (b below) {
	b.znodes, b.bytes = t.get(RootPath).below()
	return b
}

// The digest is that of a real server: ZooKeeper 3.8.6 wrote these into its log, after nothing and after two creates.
func TestReplay_DigestOfAServer(t *testing.T) {
	r := NewReplay(NewTree())
	if want := uint64(1371985504); r.Digest() != want {
		t.Errorf("digest of a fresh tree %d, want %d", r.Digest(), want)
	}
	for i, c := range []struct {
		path string
		data []byte
		time int64
		want uint64
	}{
		{"/app", []byte("one"), 1795647845251, 5448509356},
		{"/app/seq-0000000000", []byte{0}, 1795647845261, 8145539108},
	} {
		x := &Txn{Zxid: Zxid(3 + i), TimeMillis: c.time}
		code := r.Create(x, &CreateRequest{Path: c.path, Data: c.data, ACL: OpenACL}, 1)
		if code != OK || !r.DigestIs(c.want) || r.Digest() != c.want {
			t.Errorf("%s: %v, digest %d, want %d", c.path, code, r.Digest(), c.want)
		}
	}
}

// Servers whose Java has an ASCII charset count another digest, which fits, too.
func TestReplay_DigestInASCII(t *testing.T) {
	digest := func(path string) *Replay {
		r := NewReplay(NewTree())
		if code := r.Create(&Txn{Zxid: 1}, &CreateRequest{Path: path, ACL: OpenACL}, 1); code != OK {
			t.Fatalf("Create(%s) = %v", path, code)
		}
		return r
	}
	r, ascii := digest("/größe"), digest("/gr??e")
	if r.Digest() == ascii.Digest() || !r.DigestIs(ascii.Digest()) || !r.DigestIs(r.Digest()) || r.DigestIs(5) {
		t.Errorf("digests %#x and %#x, of which the first tree accepts %v and %v; want two that it accepts", r.Digest(),
			ascii.Digest(), r.DigestIs(r.Digest()), r.DigestIs(ascii.Digest()))
	}
}
