package client

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// ErrTreeLost ends the reading of a Tree: the server has given up the state, because the client was slow, went to
// another server or has begun another Tree. Begin again.
var ErrTreeLost = errors.New("the server no longer has the state of which the subtree is read")

// Tree is one subtree, or two, as they are in one state, which the server keeps until they are read or closed. A client
// has one Tree at a time. It belongs to one goroutine.
type Tree struct {
	Zxid Zxid // of the state: Feed since it has all that came after

	c     *Client
	id    int64 // random: another server, or this one later, may know another state of this session
	paths []string
	first *wire.TreeResponse // if that is all
}

// TreeZnode is a znode of a Tree.
type TreeZnode struct {
	Path string
	Mode Mode // Persistent, Ephemeral, Container or PersistentTTL
	Data []byte
	Stat Stat
	ACL  []ACL // digests are without their hash for a client without ADMIN
	// Hidden means that the client may not read the znode: nothing else is known, and those below it are left out.
	Hidden bool
}

// Tree has a server keep its present state, and returns it for reading the subtrees of one or two paths. Writers do not
// wait for it. It waits until the server has room for it: a server keeps two. Close it.
//
// Errors: ErrNoNode, ErrNoAuth (READ), ErrBadArguments, or ErrUnimplemented of a server that is not zk-lite.
func (c *Client) Tree(ctx context.Context, paths ...string) (*Tree, error) {
	t := &Tree{c: c, id: rand.Int64(), paths: paths}
	if len(paths) == 0 {
		return nil, &OpError{Op: wire.OpTree.String(), Err: ErrBadArguments}
	}
	for {
		resp, err := t.ask(ctx, wire.TreeRequest{Paths: paths})
		switch {
		case err != nil:
			return nil, err
		case !resp.Wait:
			t.first = resp
		case resp.Zxid == wire.FromNow:
			if err := pause(ctx, time.Second/4); err != nil {
				return nil, err
			}
			continue
		}
		t.Zxid = resp.Zxid
		return t, nil
	}
}

// Close tells the server that it need not keep the state. What has been read to its end is closed.
func (t *Tree) Close() {
	if t.first == nil {
		t.submit(context.Background(), wire.TreeRequest{Place: -1})
	}
}

// Znodes returns the znodes of the subtree of one of the paths: parents before children and siblings by name. It ends
// after an error: ErrTreeLost, ctx's, those of the connection.
func (t *Tree) Znodes(ctx context.Context, path string) iter.Seq2[*TreeZnode, error] {
	return func(yield func(*TreeZnode, error) bool) {
		req := wire.TreeRequest{Subtree: int32(slices.Index(t.paths, path))}
		if req.Subtree < 0 {
			yield(nil, &OpError{Op: wire.OpTree.String(), Path: path, Err: ErrBadArguments})
			return
		}
		for resp := t.first; req.Place >= 0; resp = nil {
			var err error
			if resp == nil {
				resp, err = t.ask(ctx, req)
			}
			switch {
			case err == nil && resp.Gone:
				err = &OpError{Op: wire.OpTree.String(), Path: path, Err: ErrTreeLost}
			case err == nil && resp.Wait:
				err = pause(ctx, time.Second/50)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !resp.Wait {
				req.Place = resp.Next
			}
			for _, z := range resp.Znodes {
				if !yield(&TreeZnode{t.c.rel(z.Path), z.Mode, z.Data, z.Stat, z.ACL, z.Hidden}, nil) {
					return
				}
			}
		}
	}
}

func (t *Tree) ask(ctx context.Context, req wire.TreeRequest) (*wire.TreeResponse, error) {
	return read(ctx, func() *Pending[*wire.TreeResponse] { return t.submit(ctx, req) })
}

func (t *Tree) submit(ctx context.Context, req wire.TreeRequest) *Pending[*wire.TreeResponse] {
	o := newOp[wire.TreeRequest](t.c, wire.OpTree, treeReply)
	o.req = req
	o.req.ID, o.req.Paths = t.id, nil
	for _, path := range req.Paths {
		if o.req.Paths = append(o.req.Paths, o.fullPath(path)); o.err != nil {
			break
		}
	}
	return o.submit(ctx)
}

func treeReply(_ *call, r *jute.Reader) *wire.TreeResponse {
	resp := new(wire.TreeResponse)
	resp.Decode(r)
	for i := range resp.Znodes {
		resp.Znodes[i].Data = bytes.Clone(resp.Znodes[i].Data)
	}
	return resp
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
