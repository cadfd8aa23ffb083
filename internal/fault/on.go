//go:build faults

package fault

import "sync/atomic"

// active is the one exception to the rule against package state: a switch of a build that is for
// tests only.
var active atomic.Value

// On reports whether a fault is switched on.
func On(f Fault) bool {
	now, _ := active.Load().(Fault)
	return now == f
}

// Set switches a fault on, and all others off; "" switches all off.
func Set(f Fault) { active.Store(f) }
