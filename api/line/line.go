package line

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The markers that stand before the number in the names of a queue's znodes.
const (
	Lock      = "lock-"    // Curator's InterProcessMutex
	KazooLock = "__lock__" // kazoo's Lock, and its Election
	Latch     = "latch-"   // Curator's LeaderLatch
)

// Contender is a znode that stands in a queue.
type Contender struct {
	Name   string
	Number int32 // that the server appended
}

// Name is that of a new contender before the server appends its number: Curator's
// protected names, so that its clients take it for one of theirs.
func Name(guid, marker string) string { return "_c_" + guid + "-" + marker }

// Parse reads a name. ok is false for a znode that does not stand in a queue with one
// of these markers.
//
// A server appends the parent's counter, 32 bits with a sign, by Java's %010d: ten
// characters, or eleven below -999999999, where it goes on from its largest number.
func Parse(name string, markers ...string) (c Contender, ok bool) {
	for _, width := range [...]int{10, 11} {
		if len(name) < width {
			return Contender{}, false
		}
		head, number := name[:len(name)-width], name[len(name)-width:]
		marked := func(m string) bool { return strings.HasSuffix(head, m) }
		if !slices.ContainsFunc(markers, marked) {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 32)
		if err == nil && number == fmt.Sprintf("%010d", n) { // as no server writes -000000000
			return Contender{name, int32(n)}, true
		}
	}
	return Contender{}, false
}

// Order returns those of a parent's children that stand in the queue, first come
// first. Numbers are compared as RFC 1982 does, so that the order is right where the
// counter wraps around, too.
func Order(children []string, markers ...string) []Contender {
	var all []Contender
	for _, name := range children {
		if c, ok := Parse(name, markers...); ok {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil
	}
	origin := all[0].Number // any will do: distances from it are small, and have the order
	slices.SortFunc(all, func(a, b Contender) int {
		return cmp.Or(cmp.Compare(a.Number-origin, b.Number-origin), cmp.Compare(a.Name, b.Name))
	})
	return all
}
