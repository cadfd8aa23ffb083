package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/client"
)

// Option changes a default of a recipe.
type Option func(*options)

type options struct {
	data      []byte
	acl       []client.ACL
	strict    bool
	reentrant bool
	claims    string
	delay     *time.Duration
}

func newOptions(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithData stores data in the znode of every grant, such as who holds it and
// where to reach them. It is for elections, locks, semaphores and double
// barriers.
func WithData(data []byte) Option { return func(o *options) { o.data = data } }

// WithACL sets the access control list of the znodes that a recipe creates, and
// of the parents that it creates for them. By default everyone may do everything.
func WithACL(acl ...client.ACL) Option { return func(o *options) { o.acl = acl } }

// WithLossOnSuspension makes a grant lost as soon as its client has no connection.
// By default it is lost with the session: within the session timeout no other
// client can get it, and giving it up at every short interruption costs more than
// it gains where taking over is slow. It is for elections, locks and semaphores.
func WithLossOnSuspension() Option { return func(o *options) { o.strict = true } }

// WithReentrance makes Mutex.Lock succeed at once for a caller with a context
// of a grant of the same Mutex (Grant.Context). The mutex is free again when
// all those grants are released.
func WithReentrance() Option { return func(o *options) { o.reentrant = true } }

// WithClaimPath sets where consumers of a queue create the znodes by which they
// claim items (Curator's QueueBuilder.lockPath). All consumers of a queue must use
// the same path. The default is the path of the queue followed by "-claims".
func WithClaimPath(path string) Option { return func(o *options) { o.claims = path } }

// The errors of the recipes; compare with errors.Is. Errors of the client are
// returned as they are.
var (
	// ErrNotAcquired reports that another client holds what a Try method asked for.
	ErrNotAcquired = errors.New("not acquired: it is held by others")
	// ErrLost reports that a grant is no longer held although it was not
	// released. The error also wraps the reason: client.ErrSessionExpired,
	// client.ErrClosed, ErrSuspended or ErrDeleted.
	ErrLost = errors.New("the grant is lost")
	// ErrSuspended is the reason for the loss of a grant with
	// WithLossOnSuspension.
	ErrSuspended = errors.New("the connection to the servers is gone")
	// ErrDeleted is the reason if another client deleted the grant's znode. The end of the
	// session at the servers deletes it, too: a client that reconnects at that moment may
	// learn of the znode first, and then reports the loss without waiting for the cause.
	ErrDeleted = errors.New("the znode was deleted")
	// ErrReleased is Grant.Err after Release, and the error of a Membership's methods
	// after Leave.
	ErrReleased = errors.New("the grant was released")
	// ErrNotHeld reports that no client holds the lock to revoke, or that a grant of
	// another kind was given to Downgrade.
	ErrNotHeld = errors.New("not held")
	// ErrEmpty reports that a queue has nothing to be taken now.
	ErrEmpty = errors.New("there is no item that can be taken")
	// ErrNoLeader reports that an election has no candidate.
	ErrNoLeader = errors.New("there is no leader")
)

// errPositionLost reports that a znode in a queue no longer exists, or belongs to a
// session that no longer does: start again.
var errPositionLost = errors.New("the position in the queue is lost")

// lost is ErrLost with the reason.
func lost(cause error) error { return fmt.Errorf("%w: %w", ErrLost, cause) }

// afterSync makes a read that sees every write which was acknowledged to any client
// before. It sends a sync ahead of the read, so this is one round trip. If the
// connection breaks then, the client sends the read again but not the sync, perhaps
// to a server that lags: the result of the read counts only if the sync was answered.
//
// The read may set a watch; undo, if not nil, cancels it before the read is repeated.
func afterSync(
	ctx context.Context, c *client.Client, path string, read func() error, undo func(),
) error {
	for {
		sync := c.Async().Sync(ctx, path)
		err := read()
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			return err
		}
		_, serr := sync.Wait(ctx)
		if serr == nil {
			return err
		}
		if err == nil && undo != nil {
			undo()
		}
		if !errors.Is(serr, client.ErrConnectionLoss) {
			return serr
		}
	}
}

// startAgain reports whether the reason of an error is only that a session was lost, and
// the client has a new one.
func startAgain(ctx context.Context, c *client.Client, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	return errors.Is(err, errPositionLost) ||
		errors.Is(err, client.ErrSessionExpired) && c.Session().Err() == nil
}

// maxParentTries bounds how often a parent is created again because the server deleted
// it, as an empty container, before the child was created. Twice in a row does not
// happen; more often means that another client deletes it on purpose.
const maxParentTries = 8

// withParents calls create. If the parent is missing it creates the parent as a container,
// which the server deletes when it has become empty, and calls create again.
func withParents(
	ctx context.Context, c *client.Client, dir string, acl []client.ACL, create func() error,
) error {
	for try := 1; ; try++ {
		err := create()
		if !errors.Is(err, client.ErrNoNode) || try == maxParentTries {
			return err
		}
		err = c.EnsurePath(ctx, dir, client.Container, acl...)
		if err != nil && !(errors.Is(err, client.ErrOutcomeUnknown) && ctx.Err() == nil) {
			return err
		}
	}
}

// contextError is the error of a context that is done, with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return errors.Join(err, cause)
}

// remove deletes a znode whose name no other client uses, and repeats that until the znode
// is known to be deleted.
func remove(ctx context.Context, c *client.Client, path string) error {
	for {
		err := c.Delete(ctx, path, client.AnyVersion)
		switch {
		case err == nil || errors.Is(err, client.ErrNoNode):
			return nil
		case !errors.Is(err, client.ErrOutcomeUnknown) || ctx.Err() != nil:
			return err
		}
	}
}

// removeInSession is remove for an ephemeral, in the background. It ends with
// the session at the latest, and so with the client.
func removeInSession(c *client.Client, s client.Session, path string) {
	ctx, cancel := s.Context(context.Background())
	defer cancel()
	_ = remove(ctx, c, path) // not allowed, or deleted with the session
}

func isUnknown(err error) bool { return errors.Is(err, client.ErrOutcomeUnknown) }
