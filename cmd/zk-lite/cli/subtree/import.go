package subtree

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zk-lite/zk-lite/client"
)

// Import writes the znodes of an export below root. What was written before an
// error stays; with Keep or Replace, Import can be repeated. Ephemerals are left
// out, and counted. The root / is there always, and is replaced only by Replace.
//
// Errors: ErrNodeExists (Refuse), ErrTruncated, a bad line.
func Import(
	ctx context.Context, c *client.Client, r *Reader, root string, existing Existing, step func(),
) (Count, error) {
	w := &writer{ctx: ctx, c: c, existing: existing, step: step}
	for {
		rec, err := r.Next(root)
		if errors.Is(err, io.EOF) {
			return w.Count, w.flush()
		}
		if err != nil {
			return w.Count, errors.Join(err, w.flush())
		}
		switch {
		case systemPath(rec.Path):
			err = fmt.Errorf("%s belongs to the servers and cannot be imported", rec.Path)
		case rec.Path == "/" && existing != Replace:
			w.Kept++
		default:
			err = w.put(rec)
		}
		if err != nil {
			return w.Count, err
		}
	}
}
