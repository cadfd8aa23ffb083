package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// The tree is built and deleted in multis, several under way at once.
const (
	batchOps   = 100
	batchBytes = 512 << 10 // half of the largest frame that servers take
	batchAhead = 8
)

// batcher sends operations as multis.
type batcher struct {
	conn    *conn
	ctx     context.Context
	ops     []wire.MultiOp
	bytes   int
	pending int
}

func (b *batcher) add(op wire.OpCode, body wire.Request, size int) error {
	const overhead = 64
	if b.bytes += size + overhead; len(b.ops) > 0 && b.bytes > batchBytes {
		if err := b.flush(); err != nil {
			return err
		}
		b.bytes = size + overhead
	}
	if b.ops = append(b.ops, wire.MultiOp{Type: op, Request: body}); len(b.ops) < batchOps {
		return nil
	}
	return b.flush()
}

func (b *batcher) create(path string, data []byte) error {
	return b.add(wire.OpCreate, &wire.CreateRequest{Path: path, Data: data, ACL: znode.OpenACL},
		len(path)+len(data))
}

func (b *batcher) remove(path string) error {
	return b.add(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: znode.AnyVersion}, len(path))
}

// flush sends the gathered operations, and reads replies if enough are under way.
func (b *batcher) flush() error {
	if len(b.ops) == 0 {
		return nil
	}
	frame := b.conn.append(nil, wire.OpMulti, &wire.MultiRequest{Ops: b.ops})
	if _, err := b.conn.nc.Write(frame); err != nil {
		return err
	}
	b.ops, b.bytes, b.pending = b.ops[:0], 0, b.pending+1
	return b.drain(batchAhead)
}

// drain takes replies until at most n are missing.
func (b *batcher) drain(n int) error {
	for ; b.pending > n; b.pending-- {
		if err := context.Cause(b.ctx); err != nil {
			return err
		}
		a, err := b.conn.read()
		if err == nil {
			err = a.Err.Err()
		}
		if err == nil {
			err = multiError(a.body)
		}
		if err != nil {
			return fmt.Errorf("a multi: %w", err)
		}
	}
	return nil
}

// finish sends the rest and takes all replies.
func (b *batcher) finish() error {
	if err := b.flush(); err != nil {
		return err
	}
	return b.drain(0)
}

// build deletes everything at the prefix, and creates the keys and Create's parent.
func (k *keySpace) build(ctx context.Context, c *conn, data []byte) error {
	if err := k.clear(ctx, c); err != nil {
		return err
	}
	for _, path := range append(k.ancestors(), k.newDir()) {
		_, err := c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: znode.OpenACL})
		if err != nil && !errors.Is(err, znode.ErrNodeExists) {
			return fmt.Errorf("creating %s: %w", path, err)
		}
	}
	b := &batcher{conn: c, ctx: ctx}
	for i, path := range k.paths {
		if i%dirKeys == 0 {
			if err := b.create(k.dirs[i/dirKeys], nil); err != nil {
				return fmt.Errorf("creating the keys: %w", err)
			}
		}
		if err := b.create(path, data); err != nil {
			return fmt.Errorf("creating the keys: %w", err)
		}
	}
	if err := b.finish(); err != nil {
		return fmt.Errorf("creating the keys: %w", err)
	}
	return nil
}

// clear deletes the prefix and all below.
func (k *keySpace) clear(ctx context.Context, c *conn) error {
	b := &batcher{conn: c, ctx: ctx}
	err := b.removeTree(k.prefix)
	if err == nil {
		err = b.finish()
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", k.prefix, err)
	}
	return nil
}

// removeTree deletes a znode after its children.
func (b *batcher) removeTree(path string) error {
	// Replies of multis under way must not be taken for this one's.
	if err := b.drain(0); err != nil {
		return err
	}
	a, err := b.conn.do(wire.OpGetChildren2, &wire.GetChildrenRequest{Path: path})
	if errors.Is(err, znode.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	var list wire.GetChildren2Response
	r := jute.NewReader(a.body)
	list.Decode(r)
	if r.Err() != nil {
		return r.Err()
	}
	for _, name := range list.Children {
		child := path + "/" + strings.Clone(name)
		if inner(name) {
			err = b.removeTree(child)
		} else {
			err = b.remove(child)
		}
		if err != nil {
			return err
		}
	}
	return b.remove(path)
}

// inner distinguishes the directories of the tool from its leaves, so that not every leaf has
// to be asked for children.
func inner(name string) bool { return name == "new" || name[0] == 'd' }

// Fill creates Keys znodes of ValueSize bytes in multis and leaves them, to measure the cost of
// a tree of that size. Processes of the result are read at the end.
func Fill(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	keys, data := newKeySpace(cfg.Prefix, cfg.Keys), value(cfg.Seed, cfg.ValueSize)
	start, before := time.Now(), readUsage(cfg.PIDs)
	if err := asAdmin(ctx, &cfg, func(c *conn) error { return keys.build(ctx, c, data) }); err != nil {
		return nil, err
	}
	used := readUsage(cfg.PIDs).since(before)
	res := &Result{Kind: "fill", Started: start, Config: cfg, Elapsed: time.Since(start),
		Servers: used.servers, Generator: used.self}
	res.Total = OpResult{Name: "create in multis",
		PerSecond: float64(cfg.Keys) / res.Elapsed.Seconds()}
	return res, nil
}
