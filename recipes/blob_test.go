package recipes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

const (
	// blobPart is the size of a blob's parts.
	blobPart = 128 << 10
	// manyParts is more than a reader or writer has on its way.
	manyParts = 40
)

// contentOf is a content of n bytes that no other number has.
func contentOf(n int) []byte {
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	_, _ = r.Read(data) // never fails
	return data
}

// hooked is a content that calls a function before it is at a place.
type hooked struct {
	io.Reader
	at   int
	call func() error
}

func (h *hooked) Read(p []byte) (int, error) {
	if h.at == 0 {
		h.at = -1
		if err := h.call(); err != nil {
			return 0, err
		}
	}
	if h.at > 0 {
		p = p[:min(len(p), h.at)]
	}
	n, err := h.Reader.Read(p)
	if h.at > 0 {
		h.at -= n
	}
	return n, err
}

func (k *kit) writeBlob(b *recipes.Blob, data []byte) recipes.BlobInfo {
	k.Helper()
	info, err := b.Write(k.ctx, bytes.NewReader(data), client.AnyVersion)
	k.must(err)
	return info
}

// wantBlob reads a blob, and compares.
func (k *kit) wantBlob(b *recipes.Blob, want []byte) recipes.BlobInfo {
	k.Helper()
	r, err := b.Open(k.ctx)
	k.must(err)
	got, err := io.ReadAll(r)
	k.must(err)
	if !bytes.Equal(got, want) || r.Info().Size != int64(len(want)) {
		k.Fatalf("the blob has %d bytes, of %d, want the %d that were written", len(got), r.Info().Size, len(want))
	}
	return r.Info()
}

// wantSame compares what does not depend on children.
func (k *kit) wantSame(written, read recipes.BlobInfo) {
	k.Helper()
	if written.SHA256 != read.SHA256 || written.Size != read.Size || written.Stat.Mzxid != read.Stat.Mzxid ||
		written.Stat.Version != read.Stat.Version {
		k.Errorf("Write returned %+v, Open %+v; want the same", written, read)
	}
}

// versions are the versions of a blob that are there, with the number of their children.
func (k *kit) versions(c *client.Client, path string) (all []string) {
	k.Helper()
	k.must(c.Sync(k.ctx, path))
	names, _, err := c.Children(k.ctx, path)
	k.must(err)
	for _, name := range names {
		if strings.HasPrefix(name, "_blob-") {
			all = append(all, fmt.Sprint(k.children(c, path+"/"+name)))
		}
	}
	slices.Sort(all)
	return all
}

// Any size is written and read, also one that fills its parts exactly. What is left are the
// present version and the one before.
func TestBlob_Sizes(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	b := recipes.NewBlob(c, k.path("deep/b"))
	_, err := b.Open(k.ctx)
	k.wantErr(err, client.ErrNoNode)
	before := "none"
	for _, n := range []int{0, 1, blobPart - 1, blobPart, blobPart + 1, manyParts*blobPart + 7, 16 * blobPart, 0, 5} {
		written := k.writeBlob(b, contentOf(n))
		read := k.wantBlob(recipes.NewBlob(k.connect(), k.path("deep/b")), contentOf(n))
		k.wantSame(written, read)
		parts := fmt.Sprint((n + blobPart - 1) / blobPart)
		want := slices.DeleteFunc([]string{parts, before}, func(s string) bool { return s == "none" || s == "0" })
		slices.Sort(want)
		// A version without parts is an empty container, which the server deletes.
		got := slices.DeleteFunc(k.versions(c, k.path("deep/b")), func(s string) bool { return s == "0" })
		if !slices.Equal(got, want) {
			t.Errorf("%d bytes: there are versions with %v parts, want %v", n, got, want)
		}
		before = parts
	}
	k.must(b.Delete(k.ctx))
	k.waitChildren(c, k.path("deep"), 0)
	k.wantErr(b.Delete(k.ctx), client.ErrNoNode)
	k.wantNoLeftovers()
}

// A Write with a condition replaces that version alone.
func TestBlob_Write_Versions(t *testing.T) {
	k := newKit(t)
	b := recipes.NewBlob(k.connect(), k.path("b"))
	write := func(text string, version client.Version) error {
		_, err := b.Write(k.ctx, strings.NewReader(text), version)
		return err
	}
	k.wantErr(write("a", 0), client.ErrNoNode)
	k.must(write("a", recipes.NoBlobYet))
	k.wantErr(write("b", recipes.NoBlobYet), client.ErrNodeExists)
	first := k.wantBlob(b, []byte("a"))
	k.must(write("b", first.Stat.Version))
	k.wantErr(write("c", first.Stat.Version), client.ErrBadVersion)
	k.wantBlob(b, []byte("b"))

	// Another one is faster, after this one has begun.
	second := k.wantBlob(b, []byte("b"))
	slow := &hooked{strings.NewReader("d"), 0, func() error { return write("c", second.Stat.Version) }}
	_, err := b.Write(k.ctx, slow, second.Stat.Version)
	k.wantErr(err, client.ErrBadVersion)
	k.wantBlob(b, []byte("c"))
	if got := k.versions(k.connect(), k.path("b")); len(got) != 2 {
		t.Errorf("there are versions with %v parts, want two", got)
	}
	k.wantNoLeftovers()
}

// What is not a blob's is neither replaced nor deleted.
func TestBlob_LeavesOtherThings(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	b := recipes.NewBlob(c, k.path("b"))
	for _, data := range []string{"text", `{"size":3}`, `{"format":"zk-lite-blob-1"}`, "[]"} {
		_, _, err := c.Create(k.ctx, k.path("b"), []byte(data), client.Persistent)
		k.must(err)
		_, err = b.Open(k.ctx)
		k.wantErr(err, recipes.ErrNoBlob)
		_, err = b.Write(k.ctx, strings.NewReader("x"), client.AnyVersion)
		k.wantErr(err, recipes.ErrNoBlob)
		k.wantErr(b.Delete(k.ctx), recipes.ErrNoBlob)
		k.must(c.Delete(k.ctx, k.path("b"), 0))
	}
	for _, path := range []string{"b", "b/_blob-mine", "b/other", "b/other/0000000000"} {
		_, _, err := c.Create(k.ctx, k.path(path), nil, client.Persistent)
		k.must(err)
	}
	_, err := b.Open(k.ctx)
	k.wantErr(err, recipes.ErrNoBlob)
	k.writeBlob(b, contentOf(3))
	k.writeBlob(b, contentOf(4))
	k.must(b.Delete(k.ctx))
	k.waitChildren(c, k.path("b"), 2)
	k.waitChildren(c, k.path("b/other"), 1)
}

// The content ends with an error, also one that io.ReadFull would take for its end: nothing
// has changed, and nothing is left.
func TestBlob_Write_ContentFails(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	b := recipes.NewBlob(c, k.path("b"))
	k.writeBlob(b, []byte("old"))
	ctx, cancel := context.WithCancel(k.ctx)
	for _, x := range []struct {
		call func() error
		want error
	}{
		{func() error { return io.ErrUnexpectedEOF }, io.ErrUnexpectedEOF},
		{func() error { cancel(); return nil }, context.Canceled},
	} {
		data := &hooked{bytes.NewReader(contentOf(manyParts * blobPart)), 20*blobPart + 9, x.call}
		_, err := b.Write(ctx, data, client.AnyVersion)
		k.wantErr(err, x.want)
		k.waitChildren(c, k.path("b"), 1)
	}
	k.wantBlob(b, []byte("old"))
	k.wantNoLeftovers()
}

// A writer dies with its session. The next one deletes its parts, but not those of a writer
// that lives.
func TestBlob_Write_AfterOneThatDied(t *testing.T) {
	k := newKit(t)
	c, dies := k.connect(), k.connect()
	b := recipes.NewBlob(c, k.path("b"))
	_, err := recipes.NewBlob(dies, k.path("b")).Write(k.ctx, &hooked{
		bytes.NewReader(contentOf(manyParts * blobPart)), 30 * blobPart,
		func() error { zktest.Expire(k, dies, shared.Address); return nil },
	}, client.AnyVersion)
	k.wantErr(err, client.ErrSessionExpired)
	if got := k.versions(c, k.path("b")); len(got) != 1 || len(got[0]) != 2 {
		t.Fatalf("the writer that died leaves versions with %v parts, want one with 10 or more", got)
	}
	slow := &hooked{bytes.NewReader(contentOf(2*blobPart + 2)), blobPart + 1, func() error {
		k.writeBlob(b, []byte("quick"))
		k.wantBlob(b, []byte("quick"))
		if got := k.versions(c, k.path("b")); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("there are versions with %v children, want the new one and that which is being written", got)
		}
		return nil
	}}
	_, err = recipes.NewBlob(k.connect(), k.path("b")).Write(k.ctx, slow, client.AnyVersion)
	k.must(err)
	k.wantBlob(b, contentOf(2*blobPart+2))
	k.wantNoLeftovers()
}

// The replies to all kinds of requests are lost, or the requests: the blob is written once,
// and nothing is left but what the next Write deletes.
func TestBlob_ReplyLost(t *testing.T) {
	k := newKit(t)
	for _, op := range []proxy.Op{proxy.OpMulti, proxy.OpCreate, proxy.OpDelete, proxy.OpGetData} {
		for at := range 3 {
			for _, way := range []string{"reply", "request"} {
				c, tap := k.connectTapped()
				b := recipes.NewBlob(c, k.path("b"))
				n := 0
				tap.Before(func(o proxy.Op) {
					if o != op {
						return
					}
					if n++; n != at+1 {
						return
					}
					if way == "reply" {
						tap.LoseReply(op)
					} else {
						tap.Cut()
					}
				})
				data := contentOf(3*blobPart + int(op)*10 + at)
				info := k.writeBlob(b, data)
				k.wantSame(info, k.wantBlob(b, data))
				tap.Before(nil)
				k.writeBlob(b, data)
				if got := k.versions(c, k.path("b")); !slices.Equal(got, []string{"4", "4"}) {
					t.Errorf("%v %d, %s lost: then there are versions with %v parts, want [4 4]", op, at, way, got)
				}
				k.must(c.Close())
			}
		}
	}
	k.wantNoLeftovers()
}

// A reader gets the rest of its version after it was replaced, and says so when it is gone.
func TestBlob_Reader_Replaced(t *testing.T) {
	k := newKit(t)
	b := recipes.NewBlob(k.connect(), k.path("b"))
	data := contentOf(manyParts * blobPart)
	k.writeBlob(b, data)
	for writes, want := range []error{nil, nil, recipes.ErrBlobReplaced} {
		r, err := b.Open(k.ctx)
		k.must(err)
		_, err = io.CopyN(io.Discard, r, 10)
		k.must(err)
		for range writes {
			k.writeBlob(b, data)
		}
		_, err = io.ReadAll(r)
		if !errors.Is(err, want) {
			t.Errorf("after %d writes the error is %v, want %v", writes, err, want)
		}
	}
	r, err := b.Open(k.ctx)
	k.must(err)
	k.must(b.Delete(k.ctx))
	_, err = io.ReadAll(r)
	k.wantErr(err, recipes.ErrBlobReplaced)
}

// Parts that were changed or deleted by hand are never taken for the blob.
func TestBlob_Reader_Damaged(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	b := recipes.NewBlob(c, k.path("b"))
	data := contentOf(2*blobPart + 2)
	for what, harm := range map[string]func(part string) error{
		"changed":  func(part string) error { _, err := c.Set(k.ctx, part, contentOf(blobPart), -1); return err },
		"cut":      func(part string) error { _, err := c.Set(k.ctx, part, data[:blobPart-1], -1); return err },
		"deleted":  func(part string) error { return c.Delete(k.ctx, part, -1) },
		"emptied":  func(part string) error { _, err := c.Set(k.ctx, part, nil, -1); return err },
		"extended": func(part string) error { _, err := c.Set(k.ctx, part, data[:blobPart+1], -1); return err },
	} {
		k.writeBlob(b, data)
		k.must(b.Delete(k.ctx)) // so that there is one version
		k.writeBlob(b, data)
		names, _, err := c.Children(k.ctx, k.path("b"))
		k.must(err)
		k.must(harm(k.path("b/" + names[0] + "/0000000000")))
		r, err := b.Open(k.ctx)
		k.must(err)
		if _, err = io.ReadAll(r); !errors.Is(err, recipes.ErrBlobDamaged) {
			t.Errorf("a part was %s: the error is %v, want ErrBlobDamaged", what, err)
		}
	}
}

// Parts are as secret as the znode, unless there is another ACL for them.
func TestBlob_ACL(t *testing.T) {
	k := newKit(t)
	owner, other := k.connect(client.WithAuth("digest", []byte("ann:secret"))), k.connect()
	acl := client.CreatorACL()
	b := recipes.NewBlob(owner, k.path("b"), recipes.WithACL(acl...))
	k.writeBlob(b, contentOf(1))
	k.writeBlob(recipes.NewBlob(owner, k.path("b")), contentOf(2))
	names, _, err := owner.Children(k.ctx, k.path("b"))
	k.must(err)
	for _, path := range []string{"b", "b/" + names[0], "b/" + names[0] + "/0000000000", "b/" + names[1] + "/0000000000"} {
		_, _, err := other.Get(k.ctx, k.path(path))
		k.wantErr(err, client.ErrNoAuth)
	}
	_, err = recipes.NewBlob(other, k.path("b")).Open(k.ctx)
	k.wantErr(err, client.ErrNoAuth)

	// Who may write and not administer does not see the hash, and has to say what the ACL of the parts is.
	list, _, err := owner.GetACL(k.ctx, k.path("b"))
	k.must(err)
	everyone := client.OpenACL()
	everyone[0].Perms &^= client.PermAdmin
	_, err = owner.SetACL(k.ctx, k.path("b"), append(list, everyone...), client.AnyVersion)
	k.must(err)
	_, err = recipes.NewBlob(other, k.path("b")).Write(k.ctx, strings.NewReader("x"), client.AnyVersion)
	k.wantErr(err, client.ErrInvalidACL)
	k.wantBlob(b, contentOf(2))
}

// Writers and readers of one blob at the same time: what is read is always what one writer
// wrote, and in the end two versions are left.
func TestBlob_Concurrent(t *testing.T) {
	k := newKit(t)
	const writers, writes = 3, 8
	k.writeBlob(recipes.NewBlob(k.connect(), k.path("b")), contentOf(0))
	stop, finish := context.WithCancel(k.ctx)
	defer finish()
	var writing, reading []<-chan outcome[int]
	for w := range writers {
		b := recipes.NewBlob(k.connect(), k.path("b"))
		writing = append(writing, start(func() (int, error) {
			for i := range writes {
				data := contentOf(w*blobPart + i)
				if _, err := b.Write(k.ctx, bytes.NewReader(data), client.AnyVersion); err != nil {
					return 0, err
				}
			}
			return writes, nil
		}))
		reading = append(reading, start(func() (n int, err error) {
			for ; stop.Err() == nil; n++ {
				r, err := b.Open(k.ctx)
				if err != nil {
					return n, err
				}
				got, err := io.ReadAll(r)
				switch {
				case errors.Is(err, recipes.ErrBlobReplaced):
				case err != nil:
					return n, err
				case !bytes.Equal(got, contentOf(len(got))):
					return n, fmt.Errorf("%d bytes were read that nobody wrote", len(got))
				}
			}
			return n, nil
		}))
	}
	for _, c := range writing {
		k.must(receive(k, "a writer", c).err)
	}
	finish()
	for _, c := range reading {
		got := receive(k, "a reader", c)
		k.must(got.err)
		if got.v == 0 {
			t.Error("a reader has read nothing, want some versions")
		}
	}
	if got := k.versions(k.connect(), k.path("b")); len(got) != 2 {
		t.Errorf("there are versions with %v parts, want two", got)
	}
	k.wantNoLeftovers()
}
