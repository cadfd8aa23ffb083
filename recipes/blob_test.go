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
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
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

func (k *kit) openBlob(b *recipes.Blob) *recipes.BlobReader {
	k.Helper()
	r, err := b.Open(k.ctx)
	k.must(err)
	return r
}

// wantBlob reads a blob, and compares.
func (k *kit) wantBlob(b *recipes.Blob, want []byte) recipes.BlobInfo {
	k.Helper()
	r := k.openBlob(b)
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

// The context ends when one of the two transactions has been sent, or is about to be: whatever
// has become of it, the old or the new version is there, and no other while the session lives.
func TestBlob_Write_ContextEnds(t *testing.T) {
	k := newKit(t)
	other := k.connect()
	for at := range 2 {
		for _, lost := range []bool{false, true} {
			c, tap := k.connectTapped()
			b := recipes.NewBlob(c, k.path("b"))
			before := k.writeBlob(b, contentOf(2*blobPart))
			ctx, cancel := context.WithCancel(k.ctx)
			n := 0
			tap.Before(func(op proxy.Op) {
				if op != proxy.OpMulti {
					return
				}
				if n++; n == at+1 {
					cancel()
					if lost {
						tap.Cut()
					}
				}
			})
			after, err := b.Write(ctx, bytes.NewReader(contentOf(3*blobPart)), client.AnyVersion)
			tap.Before(nil)
			if err != nil && !errors.Is(err, context.Canceled) || at == 0 && errors.Is(err, client.ErrOutcomeUnknown) {
				t.Errorf("transaction %d, lost %t: the error is %v, want one that tells whether it is written", at, lost, err)
			}
			wait.Until(k, "only versions are left that can be read", func() bool {
				k.must(other.Sync(k.ctx, k.path("b")))
				m, _, err := other.Get(k.ctx, k.path("b"))
				k.must(err)
				names, _, err := other.Children(k.ctx, k.path("b"))
				k.must(err)
				return !slices.ContainsFunc(names, func(name string) bool { return !bytes.Contains(m, []byte(name)) })
			})
			switch now := k.openBlob(b).Info(); {
			case err == nil:
				k.wantSame(after, now)
			case !errors.Is(err, client.ErrOutcomeUnknown):
				k.wantSame(before, now)
			}
			k.must(b.Delete(k.ctx))
		}
	}
	k.wantNoLeftovers()
}
