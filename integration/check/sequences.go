package check

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// sequenceDigits is the length of the number that a sequential create appends.
const sequenceDigits = 10

// Sequences checks that the names which sequential creates give are unique under their parent and
// rise: with the zxids, and for creates of which one began after the other was answered. With
// Changes, those of unanswered creates count too.
//
// Guarantee: Sequence numbers.
func Sequences(h *History) []Violation {
	var f findings
	byParent := map[string][]named{}
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Kind != Create || o.Outcome != OK || !o.Mode.Sequential() {
			continue
		}
		if n, ok := sequenceOf(o.Path, o.Created); ok {
			byParent[parentOf(o.Path)] = append(byParent[parentOf(o.Path)], named{o, n})
		} else {
			f.add("Sequence numbers", "%s made %q, which is not its path with %d digits", o.say(),
				o.Created, sequenceDigits)
		}
	}
	for _, list := range byParent {
		f.unique(list)
		f.rising(list)
	}
	return f.list
}

// named is a sequential create with the number that it got.
type named struct {
	*Op
	n int64
}

func sequenceOf(path, created string) (int64, bool) {
	digits, ok := strings.CutPrefix(created, path)
	if !ok || len(digits) != sequenceDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

func (f *findings) unique(list []named) {
	seen := map[int64]*Op{}
	for _, o := range list {
		if other := seen[o.n]; other != nil {
			f.add("Sequence numbers", "%s and %s got the same number %d", other.say(), o.say(), o.n)
		}
		seen[o.n] = o.Op
	}
	byZxid := slices.Clone(list)
	slices.SortStableFunc(byZxid, func(a, b named) int { return cmp.Compare(a.Zxid, b.Zxid) })
	for i := 1; i < len(byZxid); i++ {
		a, b := byZxid[i-1], byZxid[i]
		if a.Zxid != 0 && a.n > b.n {
			f.add("Sequence numbers", "%s got %d, and the later %s got %d", a.say(), a.n, b.say(), b.n)
		}
	}
}

func (f *findings) rising(list []named) {
	byCall := slices.Clone(list)
	slices.SortFunc(byCall, func(a, b named) int { return cmp.Compare(a.Call, b.Call) })
	byReturn := slices.Clone(list)
	slices.SortFunc(byReturn, func(a, b named) int { return cmp.Compare(a.Return, b.Return) })
	next := 0
	high := named{n: -1}
	for _, o := range byCall {
		for ; next < len(byReturn) && byReturn[next].Return < o.Call; next++ {
			if byReturn[next].n > high.n {
				high = byReturn[next]
			}
		}
		if high.Op != nil && o.n <= high.n {
			f.add("Sequence numbers", "%s got %d, after %s had got %d", o.say(), o.n, high.say(), high.n)
		}
	}
}

// Tokens checks locks and elections by their fencing tokens: a token has one holder; tokens rise, in
// that an attempt that began after another had succeeded gets the higher token; two holders do not
// overlap, unless the first one's session had ended; and a resource that is guarded by tokens has
// accepted no token after a higher one.
//
// Guarantee: Locks.
func Tokens(h *History) []Violation {
	var f findings
	byLock := map[string][]Hold{}
	for _, x := range h.Holds {
		byLock[x.Lock] = append(byLock[x.Lock], x)
	}
	for lock, list := range byLock {
		slices.SortFunc(list, func(a, b Hold) int { return cmp.Compare(a.Token, b.Token) })
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			switch {
			case a.Token == b.Token:
				f.add("Locks", "%s: clients %d and %d held it with the same token %d", lock, a.Client,
					b.Client, a.Token)
			case b.From < a.Asked:
				f.add("Locks", "%s: client %d got token %d at %v, before client %d, who got %d, had asked at %v",
					lock, b.Client, b.Token, b.From, a.Client, a.Token, a.Asked)
			case b.From < a.To && !a.SessionEnded:
				f.add("Locks", "%s: client %d held it from %v to %v, and client %d from %v on", lock, a.Client,
					a.From, a.To, b.Client, b.From)
			}
		}
	}
	uses := slices.Clone(h.Uses)
	slices.SortStableFunc(uses, func(a, b Use) int { return cmp.Compare(a.At, b.At) })
	high := map[string]uint64{}
	for _, u := range uses {
		if u.Token < high[u.Lock] {
			f.add("Locks", "%s: token %d was accepted after %d", u.Lock, u.Token, high[u.Lock])
		}
		high[u.Lock] = max(high[u.Lock], u.Token)
	}
	return f.list
}
