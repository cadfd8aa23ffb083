package learner

import (
	"fmt"

	"github.com/zk-lite/zk-lite/znode"
)

// order checks that transactions come as they were committed: the upper half of a zxid is the epoch of the leader that
// made it, the lower half counts from 1 in each.
type order struct {
	last  znode.Zxid // the newest transaction, or that of the position or the snapshot
	epoch int64      // the leader's; none is newer
	fuzzy bool       // last is a snapshot's, which also has transactions that come later, and may be older
}

// next checks the next transaction. repeat is whether it came before, which is no error during a synchronization.
// Errors: ErrGap.
func (o *order) next(z znode.Zxid) (repeat bool, err error) {
	switch {
	case z <= o.last && o.fuzzy:
		// The first after a snapshot, whose own zxid is read later than the transactions are queued.
	case z <= o.last:
		return true, nil
	case epochOf(z) > o.epoch:
		return false, fmt.Errorf("%w: %v is of a later epoch than the leader's, %d", ErrGap, z, o.epoch)
	case epochOf(z) == epochOf(o.last) && z != o.last+1, epochOf(z) > epochOf(o.last) && counterOf(z) != 1:
		return false, fmt.Errorf("%w: %v follows %v", ErrGap, z, o.last)
	}
	o.last, o.fuzzy = z, false
	return false, nil
}

// mustNext is next where a repeat is an error.
func (o *order) mustNext(z znode.Zxid) error {
	repeat, err := o.next(z)
	if repeat {
		err = fmt.Errorf("%w: %v comes after %v", ErrGap, z, o.last)
	}
	return err
}
