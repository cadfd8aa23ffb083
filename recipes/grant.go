package recipes

import (
	"context"
	"errors"
	"sync"

	"github.com/zk-lite/zk-lite/client"
)

// Grant is a right: a lock, a permit of a semaphore, leadership. It is held until
// Release, or until it is lost. Call Release after a loss, too: with
// WithLossOnSuspension the znode may still exist, and others wait for it. All
// methods are safe for concurrent use.
//
// The client learns of a loss before another client can get the grant, unless this
// process is paused, or one of its messages is delayed, for longer than the session
// timeout. For that case let the resource compare fencing tokens: it must refuse a token
// below the highest that it has seen.
type Grant struct {
	hold *hold

	once     sync.Once
	released error // of Release; protected by once
}

// hold is shared by the grants of one znode; only re-entrant ones are more than
// one.
type hold struct {
	position *position
	strict   bool
	ctx      context.Context // done when lost or released
	cancel   context.CancelCauseFunc

	revoked chan struct{} // closed by watch
	stop    chan struct{} // closed by the last release
	done    chan struct{} // closed when watch has ended

	mu sync.Mutex // protects the fields below
	n  int        // grants that are not released
}

// newGrant starts to watch a position that has become a grant.
func newGrant(p *position, strict bool) *Grant {
	h := &hold{
		position: p, strict: strict, n: 1,
		revoked: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	if p.revoked {
		close(h.revoked)
	}
	var states *client.StateWatch
	if strict {
		states = p.queue.c.States()
	}
	go h.watch(states)
	return &Grant{hold: h}
}

// FencingToken is the fencing token: the zxid of the transaction that created the
// grant's znode. Of two grants of the same lock or election the later one has the
// higher token.
func (g *Grant) FencingToken() int64 { return int64(g.hold.position.token) }

// Path is that of the grant's znode.
func (g *Grant) Path() string { return g.hold.position.path }

// Session is the one that owns the znode.
func (g *Grant) Session() client.Session { return g.hold.position.session }

// Done returns a channel that is closed when the grant is lost or released.
func (g *Grant) Done() <-chan struct{} { return g.hold.ctx.Done() }

// Err is nil while the grant is held, then ErrLost with the reason or
// ErrReleased.
func (g *Grant) Err() error { return g.hold.err() }

// Revoked returns a channel that is closed when another client asks for a release
// (Mutex.Revoke, Curator's Revoker). The holder decides whether to release.
func (g *Grant) Revoked() <-chan struct{} { return g.hold.revoked }

type holdKey struct{ owner any }

// Context returns a context for work that needs the grant: it is cancelled when the
// grant is lost or released, at once if it already has been, and operations of the
// client that use it fail rather than run in another session. The caller must call
// cancel.
func (g *Grant) Context(parent context.Context) (ctx context.Context, cancel func()) {
	h := g.hold
	parent = context.WithValue(parent, holdKey{h.position.queue}, h)
	ctx, cancelSession := h.position.session.Context(parent)
	ctx, cancelCause := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.ctx, func() { cancelCause(context.Cause(h.ctx)) })
	if err := h.err(); err != nil {
		cancelCause(err) // AfterFunc's goroutine could come after the first operation
	}
	return ctx, func() {
		stop()
		cancelCause(context.Canceled)
		cancelSession()
	}
}

// Release gives the grant back, so that the next in the queue can have it. If ctx
// ends before that is certain, Release returns its error and continues in the
// background. Only the first call has an effect; others return the same.
//
// Errors: ErrLost if the grant had been lost before.
func (g *Grant) Release(ctx context.Context) error {
	g.once.Do(func() { g.released = g.hold.release(ctx) })
	return g.released
}

// again adds a grant to a hold that has not ended.
func (h *hold) again() (*Grant, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == 0 || h.err() != nil {
		return nil, false
	}
	h.n++
	return &Grant{hold: h}, true
}

// err is Grant.Err. Contexts of the session may end before the goroutine has seen
// that the session is lost.
func (h *hold) err() error {
	if cause := h.position.session.Err(); cause != nil {
		h.cancel(lost(cause)) // the first cause stays
	}
	return context.Cause(h.ctx)
}

func (h *hold) release(ctx context.Context) error {
	h.mu.Lock()
	h.n--
	last := h.n == 0
	h.mu.Unlock()
	cause := h.err()
	if !last {
		return cause
	}
	h.cancel(ErrReleased)
	close(h.stop)
	<-h.done
	// The next holder may start once the znode is deleted, so that comes last.
	err := h.position.leave(ctx)
	if cause = context.Cause(h.ctx); errors.Is(cause, ErrLost) {
		return cause
	}
	if err == nil && h.position.session.Err() != nil {
		return lost(h.position.session.Err())
	}
	return err
}

// watch is the hold's goroutine. It notices the loss of the grant and requests
// to release it.
func (h *hold) watch(states *client.StateWatch) {
	defer close(h.done)
	var changes <-chan client.StateChange
	if states != nil {
		defer states.Cancel()
		changes = states.C()
	}
	events := h.position.own.C()
	var rearmed <-chan error // of a rearm in progress
	var rearms sync.WaitGroup
	defer rearms.Wait()
	defer h.cancel(ErrReleased) // ends a rearm; the first cause stays
	for {
		select {
		case <-h.stop:
			return
		case <-h.position.session.Done():
			h.cancel(lost(h.position.session.Err()))
			return
		case s := <-changes:
			if !s.State.Connected() {
				h.cancel(lost(ErrSuspended))
				return
			}
		case e := <-events:
			events, rearmed = nil, h.rearm(&rearms, e)
		case err := <-rearmed:
			rearmed = nil
			if err != nil {
				h.cancel(lost(h.reason(err)))
				return
			}
			h.noteRevoked()
			events = h.position.own.C()
		}
	}
}

// rearm sets the own watch again after an event, in a goroutine because that
// can take time: the goroutine of watch must keep seeing suspensions.
func (h *hold) rearm(rearms *sync.WaitGroup, e client.Event) <-chan error {
	result := make(chan error, 1)
	rearms.Go(func() {
		ctx, cancel := h.position.session.Context(h.ctx)
		defer cancel()
		result <- h.position.ownChanged(ctx, e)
	})
	return result
}

// reason returns why the own watch could not be kept.
func (h *hold) reason(err error) error {
	if cause := h.position.session.Err(); cause != nil {
		return cause
	}
	if errors.Is(err, errPositionLost) {
		return ErrDeleted
	}
	return err
}

func (h *hold) noteRevoked() {
	if !h.position.revoked {
		return
	}
	select {
	case <-h.revoked:
	default:
		close(h.revoked)
	}
}
