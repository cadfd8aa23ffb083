package client

import (
	"context"
	"errors"

	"github.com/zk-lite/zk-lite/znode"
)

// EnsurePath creates a znode without data and those above it, as far as they do
// not exist. The mode is Persistent, or Container for znodes that the server
// may delete again when their last child has gone.
//
// Errors: those of Create but ErrNodeExists. It may be called again after
// ErrOutcomeUnknown.
func (c *Client) EnsurePath(ctx context.Context, path string, mode Mode, acl ...ACL) error {
	if path == "/" && c.chroot == "" {
		return nil
	}
	_, _, err := c.Create(ctx, path, nil, mode, acl...)
	switch {
	case err == nil || errors.Is(err, ErrNodeExists):
		return nil
	case !errors.Is(err, ErrNoNode) || path == "/":
		return err
	}
	if err := c.EnsurePath(ctx, znode.Parent(path), mode, acl...); err != nil {
		return err
	}
	_, _, err = c.Create(ctx, path, nil, mode, acl...)
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return err
}
