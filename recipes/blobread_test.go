package recipes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// A reader gets the rest of its version after it was replaced, and says so when it is gone.
func TestBlob_Reader_Replaced(t *testing.T) {
	k := newKit(t)
	b := recipes.NewBlob(k.connect(), k.path("b"))
	data := contentOf(manyParts * blobPart)
	k.writeBlob(b, data)
	for writes, want := range []error{nil, nil, recipes.ErrBlobReplaced} {
		r := k.openBlob(b)
		_, err := io.CopyN(io.Discard, r, 10)
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
