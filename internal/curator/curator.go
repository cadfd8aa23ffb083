// Package curator parses and makes the znode names of Curator's and kazoo's queues, and orders
// them: the waiters of locks, elections and semaphores, which are ephemeral sequential znodes
// below one parent, and the items of queues. The HTTP API and the recipes share it, so that
// their clients wait in the same queue. It handles names only: it reads no tree and waits for
// nothing.
package curator

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// The markers before the number in the names of a queue's znodes.
const (
	Lock      = "lock-"    // Curator's InterProcessMutex
	KazooLock = "__lock__" // kazoo's Lock, and its Election
	Latch     = "latch-"   // Curator's LeaderLatch
	ReadLock  = "__READ__" // Curator's InterProcessReadWriteLock, for readers
	WriteLock = "__WRIT__" // the same, for writers
	Lease     = "lease-"   // Curator's InterProcessSemaphoreV2
)

// Waiter is a znode in a queue; the first one holds the lock, or whatever the queue is for.
type Waiter struct {
	Name   string
	Marker string
	Number int32 // that the server appended
}

// Name is that of a new waiter before the server appends its number: Curator's protected
// names, so that its clients take it for one of theirs.
func Name(guid, marker string) string { return "_c_" + guid + "-" + marker }

// Parse reads a name, with a GUID or without: _c_<guid>-lock-0000000007 has the marker
// lock-. ok is false for a znode that is not in a queue with one of these markers.
func Parse(name string, markers ...string) (w Waiter, ok bool) {
	for _, marker := range markers {
		i := strings.LastIndex(name, marker)
		if i < 0 {
			continue
		}
		if n, ok := znode.ParseSequence(name[i+len(marker):]); ok {
			return Waiter{name, marker, n}, true
		}
	}
	return Waiter{}, false
}

// Order returns those of a parent's children that are in the queue, oldest first. Others are
// left out.
//
// Numbers are compared as in RFC 1982: the order is right where the counter wraps, as
// long as the znodes of one queue are less than 2^31 creations apart.
func Order(children []string, markers ...string) []Waiter {
	var all []Waiter
	for _, name := range children {
		if w, ok := Parse(name, markers...); ok {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return nil
	}
	origin := all[0].Number // distances from any member order them, wherever the wrap is
	slices.SortFunc(all, func(a, b Waiter) int {
		return cmp.Or(
			cmp.Compare(a.Number-origin, b.Number-origin),
			cmp.Compare(b.Marker, a.Marker), // a write lock before its downgrade
			cmp.Compare(a.Name, b.Name),
		)
	})
	return all
}

// Ahead returns the waiters before the one with a name, oldest first; queued is false if it is
// not among the children, or not in the queue.
func Ahead(children []string, name string, markers ...string) (ahead []Waiter, queued bool) {
	all := Order(children, markers...)
	for i, w := range all {
		if w.Name == name {
			return all[:i], true
		}
	}
	return nil, false
}

// Predecessor returns the waiter to wait for, given those ahead: the last one with one of
// the markers, or with any if none is given. It is nil if there is none: then it is the
// waiter's turn. A waiter that watches only its predecessor wakes when its turn may have
// come, and a release does not wake all others.
func Predecessor(ahead []Waiter, markers ...string) *Waiter {
	for i := len(ahead) - 1; i >= 0; i-- {
		if len(markers) == 0 || slices.Contains(markers, ahead[i].Marker) {
			return &ahead[i]
		}
	}
	return nil
}
