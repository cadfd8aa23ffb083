package recipes

import (
	"errors"
	"fmt"
)

// The errors of the recipes; compare with errors.Is. Errors of the client pass
// through.
var (
	// ErrNotAcquired reports that another client has what a Try method asked for.
	ErrNotAcquired = errors.New("not acquired: it is held by others")
	// ErrLost reports that a grant is not held any more although it was not
	// released. The reason is in the same error: client.ErrSessionExpired,
	// client.ErrClosed, ErrSuspended or ErrDeleted.
	ErrLost = errors.New("the grant is lost")
	// ErrSuspended is the reason for the loss of a grant that was asked for
	// with WithLossOnSuspension.
	ErrSuspended = errors.New("the connection to the servers is gone")
	// ErrDeleted is the reason if another client has deleted the grant's znode. So has the end
	// of the session at the servers; a client that reconnects in that moment may get
	// of the znode first, and a loss is not kept back to find out.
	ErrDeleted = errors.New("the znode was deleted")
	// ErrReleased is Grant.Err after Release, and what a member gets who has left.
	ErrReleased = errors.New("the grant was released")
	// ErrNotHeld reports that no client holds what was to be revoked, or that a grant
	// of another kind was given to Downgrade.
	ErrNotHeld = errors.New("not held")
	// ErrEmpty reports that a queue has nothing to be taken now.
	ErrEmpty = errors.New("there is no item that can be taken")
	// ErrNoLeader reports that an election has no candidate.
	ErrNoLeader = errors.New("there is no leader")
)

// errPositionLost reports that a znode in a queue is gone, or belongs to a session that
// is: start again.
var errPositionLost = errors.New("the position in the queue is lost")

// lost is ErrLost with the reason.
func lost(cause error) error { return fmt.Errorf("%w: %w", ErrLost, cause) }
