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
	err := w.read(r, root)
	err = errors.Join(err, w.flush())
	return w.Count, err
}

func (w *writer) read(r *Reader, root string) error {
	for {
		rec, err := r.Next(root)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case systemPath(rec.Path):
			return fmt.Errorf("%s belongs to the servers and cannot be imported", rec.Path)
		case rec.Path == "/" && w.existing != Replace:
			w.Kept++
			continue
		}
		if err := w.put(rec); err != nil {
			return err
		}
	}
}
