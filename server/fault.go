package server

import (
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fault"
)

// What follows is for deliberate faults (package fault).

// idleSync answers a sync with what this server happens to have.
type idleSync struct{ Op }

func (s idleSync) Read(v *View) { s.Done(v, &state.Result{Op: state.OpSync, Zxid: v.Zxid()}) }

// lease is how long a session lives without a heartbeat: its timeout.
func lease(timeout time.Duration) time.Duration {
	if fault.On(fault.ExpireEarly) {
		return timeout / 4
	}
	return timeout
}

// reaps reports whether this server removes what has expired: the leader does.
func reaps(leads bool) bool { return leads && !fault.On(fault.NeverReap) }
