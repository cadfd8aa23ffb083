package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// ProtectedPrefix starts the name of a protected znode, before its GUID
// (Curator's ProtectedUtils.PROTECTED_PREFIX).
const ProtectedPrefix = "_c_"

// maxCleanups bounds the concurrent searches for protected znodes whose
// creators stopped waiting. More than a few mean that no server answers.
const maxCleanups = 64

// cleanupTries bounds how often one clean-up restarts, each time after a broken
// connection.
const cleanupTries = 8

// CreateProtected is Create for a znode of which the caller must know whether it
// was created, such as a place in the queue for a lock: if the connection breaks
// before the answer, it looks for the znode, and creates it if it does not
// exist. For that, the name starts with _c_ and a GUID, as with Curator's
// withProtection:
//
//	/locks/lock-  becomes  /locks/_c_5e2b...-lock-0000000007
//
// It creates an ephemeral only in the session that is current at the call; if that
// is lost, the error is ErrSessionExpired. If ctx ends while the outcome is
// unknown, the error is ErrOutcomeUnknown, and the client looks for the znode in
// the background and deletes it.
func (c *Client) CreateProtected(
	ctx context.Context, path string, data []byte, mode Mode, acl ...ACL,
) (string, Stat, error) {
	if mode.Ephemeral() {
		bound, cancel := c.Session().Context(ctx)
		defer cancel()
		ctx = bound
	}
	parent, base := znode.Parent(path), znode.Base(path)
	prefix := ProtectedPrefix + newGUID() + "-"
	name := znode.Join(parent, prefix+base)
	for {
		created, stat, err := c.Create(ctx, name, data, mode, acl...)
		ours := errors.Is(err, ErrNodeExists) && !mode.Sequential()
		if err == nil || !ours && !errors.Is(err, ErrOutcomeUnknown) {
			return created, stat, err
		}
		if ctx.Err() == nil {
			var ferr error
			created, stat, ferr = c.findProtected(ctx, parent, prefix)
			if ferr == nil && created != "" {
				return created, stat, nil
			}
			if ferr == nil {
				continue // it has not happened: try again
			}
			err = c.unresolved(name, ferr)
		}
		if errors.Is(err, ErrOutcomeUnknown) {
			c.cleanUp(parent, prefix, mode)
		}
		return "", Stat{}, err
	}
}

// unresolved is the error of a creation whose outcome could not be determined.
func (c *Client) unresolved(name string, err error) error {
	if errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoAuth) {
		return err // the parent: there can be no znode, or it cannot be seen
	}
	return &OpError{Op: "create", Path: name, Err: &unknownOutcome{err}}
}

// findProtected looks for the child whose name starts with prefix, and returns
// "" if there is none. The sync comes first because the server may lag behind
// the one that took the request; writes that the session sent over an older
// connection are ordered before the sync or refused (SESSIONMOVED).
func (c *Client) findProtected(
	ctx context.Context, parent, prefix string,
) (string, Stat, error) {
	if err := c.Sync(ctx, parent); err != nil {
		return "", Stat{}, err
	}
	children, _, err := c.Children(ctx, parent)
	if err != nil {
		return "", Stat{}, err
	}
	for _, name := range children {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		path := znode.Join(parent, name)
		found, stat, err := c.Exists(ctx, path)
		if err != nil || found {
			return path, stat, err
		}
	}
	return "", Stat{}, nil
}

// cleanUp deletes, in the background, a protected znode that no caller waits for.
func (c *Client) cleanUp(parent, prefix string, mode Mode) {
	select {
	case c.janitor <- struct{}{}:
	default:
		c.cfg.logger.Warn("too many clean-ups; a znode may be left",
			"parent", parent, "prefix", prefix)
		return
	}
	session := c.Session()
	started := c.spawn(func() {
		defer func() { <-c.janitor }()
		ctx := c.ctx
		if mode.Ephemeral() {
			bound, cancel := session.Context(ctx)
			defer cancel()
			ctx = bound
		}
		var err error
		for try := 0; try < cleanupTries && ctx.Err() == nil; try++ {
			if err = c.deleteProtected(ctx, parent, prefix); err == nil {
				return
			}
		}
		c.cfg.logger.Warn("a protected znode may be left",
			"parent", parent, "prefix", prefix, "error", err)
	})
	if !started {
		<-c.janitor
	}
}

func (c *Client) deleteProtected(ctx context.Context, parent, prefix string) error {
	path, _, err := c.findProtected(ctx, parent, prefix)
	if err != nil || path == "" {
		return err
	}
	err = c.Delete(ctx, path, AnyVersion)
	if errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}

// newGUID returns a random UUID (RFC 9562, version 4).
func newGUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
