package recipes

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/zk-lite/zk-lite/client"
)

// Item is a claimed item of a queue: no other client gets it until Release, or until the
// session of the claim is lost, and none after Complete.
type Item struct {
	Data []byte
	More [][]byte // further items of the same znode, from Curator's putMulti

	q           *queue
	path, claim string
	word        string
	key         int64
	token       int64
	session     client.Session
	released    atomic.Bool
}

// FencingToken is the zxid of the claim's creation: if an item is claimed again, the
// later claim has the higher token.
func (i *Item) FencingToken() int64 { return i.token }

// Path is that of the item's znode. No two items of a queue have the same.
func (i *Item) Path() string { return i.path }

// Done returns a channel that is closed when the claim's session is lost: from then on
// another client may have the item.
func (i *Item) Done() <-chan struct{} { return i.session.Done() }

// Err is nil while the claim may be held, ErrLost with the reason when its session is
// lost, and ErrReleased after Release.
func (i *Item) Err() error {
	if i.released.Load() {
		return ErrReleased
	}
	if cause := i.session.Err(); cause != nil {
		return lost(cause)
	}
	return nil
}

// Context returns a context for the work on the item: it is cancelled when the claim
// is lost with its session. The caller must call cancel.
func (i *Item) Context(parent context.Context) (ctx context.Context, cancel func()) {
	return i.session.Context(parent)
}

// Complete removes the item from the queue, together with the claim.
//
// Errors: ErrLost if the claim was lost, so that another client gets or has got the
// item; client.ErrOutcomeUnknown if ctx or the session ends before that is known;
// ErrReleased after Release.
func (i *Item) Complete(ctx context.Context) error {
	if i.released.Load() {
		return ErrReleased
	}
	ctx, cancel := i.session.Context(ctx)
	defer cancel()
	var unknown error // of an earlier attempt: later ones do not settle it
	for {
		m := i.q.c.Multi()
		m.Delete(i.claim, client.AnyVersion)
		m.Delete(i.path, client.AnyVersion)
		err := m.Commit(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, client.ErrNoNode): // one of the two, or it is a repetition
			gone, gerr := i.gone(ctx)
			switch {
			case gone:
				return nil
			case gerr == nil:
				return lost(ErrDeleted)
			}
			return errors.Join(unknown, gerr)
		case isUnknown(err) && ctx.Err() == nil:
			// If it has happened the item no longer exists: a repetition fails
			// and does no harm, even if another client has made a claim since.
			unknown = err
		case unknown == nil && !isUnknown(err) && i.session.Err() != nil:
			return lost(i.session.Err())
		default:
			return errors.Join(unknown, err)
		}
	}
}

// gone reports whether the item no longer exists, and then releases the claim.
func (i *Item) gone(ctx context.Context) (bool, error) {
	exists, _, err := i.q.c.Exists(ctx, i.path)
	if err != nil || exists {
		return false, err
	}
	_ = i.Release(ctx) // continues in the background
	return true, nil
}

// Release gives up the claim, so that the item can be taken again, at its old place
// in the queue. If ctx ends before that is certain, Release returns its error and
// continues in the background. It is not an error if the claim was lost before.
func (i *Item) Release(ctx context.Context) error {
	i.released.Store(true)
	bound, cancel := i.session.Context(ctx)
	defer cancel()
	err := ctx.Err()
	if err == nil {
		err = i.settleClaim(bound)
	}
	switch {
	case err == nil || i.session.Err() != nil:
		return nil
	case ctx.Err() != nil:
		go func() {
			bound, cancel := i.session.Context(context.Background())
			defer cancel()
			_ = i.settleClaim(bound) // or deleted with the session
		}()
	}
	return err
}

// settleClaim deletes the claim if it is ours. Another client may create one of
// the same name as soon as ours is deleted, so settleClaim reads it before every
// attempt.
func (i *Item) settleClaim(ctx context.Context) error {
	for {
		ours, _, err := i.findClaim(ctx)
		if err != nil || !ours {
			return err
		}
		err = i.q.c.Delete(ctx, i.claim, client.AnyVersion)
		switch {
		case err == nil || errors.Is(err, client.ErrNoNode):
			return nil
		case !isUnknown(err) || ctx.Err() != nil:
			return err
		}
	}
}
