package selfcheck

import (
	"github.com/zk-lite/zk-lite/consensus/state"
)

// MaxIndexes is for how many indexes one question may ask.
const MaxIndexes = 16

// Answer is what a server tells another.
type Answer struct {
	Newest  state.Point   `json:"newest"`            // of what it has applied
	Last    uint64        `json:"last"`              // index in its log
	Points  []state.Point `json:"points,omitempty"`  // as of each index asked for; Index 0: not known
	Digests []Digest      `json:"digests,omitempty"` // the newest, the oldest of them first
	// Life is the last incarnation of the server that asks of which it has applied a command.
	Life    uint64 `json:"life,omitempty"`
	OldCopy bool   `json:"oldCopy,omitempty"` // its disk does not know its last start
	Halted  string `json:"halted,omitempty"`  // why it is; empty: it is not
}

// Answer is what r has to say about indexes.
func (r *Record) Answer(at []uint64) *Answer {
	a := &Answer{Newest: r.Newest(), Digests: r.Digests()}
	for _, index := range at[:min(len(at), MaxIndexes)] {
		p, _ := r.At(index)
		a.Points = append(a.Points, p)
	}
	return a
}

// Relation is how another server's history stands to this server's.
type Relation int

// The relations.
const (
	Unknown Relation = iota
	Same             // up to where both have applied
	Behind           // its log ends before what this server has applied: a majority had that on its disks
	Differs
)

// Compare compares r with the answer of a server that was asked for the index of own, which was r's newest point. The
// points are what was compared, as of the same index.
func (r *Record) Compare(own state.Point, a *Answer) (rel Relation, mine, theirs state.Point) {
	known := len(a.Points) > 0 && a.Points[0].Index > 0
	switch {
	case own.Index == 0:
		return Unknown, mine, theirs
	case a.Newest.Index >= own.Index:
		mine, theirs = own, state.Point{}
		if known {
			theirs = a.Points[0]
		}
	default:
		mine, known = r.At(a.Newest.Index)
		theirs = a.Newest
	}
	switch {
	case known && mine.History != theirs.History:
		return Differs, mine, theirs
	case a.Last < own.Index:
		return Behind, own, a.Newest
	case known:
		return Same, mine, theirs
	}
	return Unknown, mine, theirs
}

// FirstDifference narrows down where the history of a server that differs as of index high begins to: same is the
// last point known to be the same, differs the first one known not to be. ask asks that server; nil is no answer.
func (r *Record) FirstDifference(high state.Point, ask func(at []uint64) *Answer) (same, differs state.Point) {
	differs = high
	for {
		at := r.Between(same.Index, differs.Index)
		if len(at) == 0 {
			return same, differs
		}
		a := ask(at)
		if a == nil {
			return same, differs
		}
		before := [2]state.Point{same, differs}
		for i := range min(len(at), len(a.Points)) {
			mine, known := r.At(at[i])
			switch {
			case !known || a.Points[i].Index == 0:
			case mine.History == a.Points[i].History:
				same = mine
			case mine.Index < differs.Index:
				differs = mine
			}
		}
		if before == [2]state.Point{same, differs} {
			return same, differs
		}
	}
}

// Verdict is what digests at one index say.
type Verdict struct {
	Own Digest // Index 0: there is no index of which a majority of the voters has a digest
	// Majority is what a majority of the voters has there; nil: no majority has the same.
	Majority *Digest
	Differ   []state.ServerID // other voters that have something else than this server
}

// CompareDigests compares a server's digests with the other servers', at the newest index of which it and a majority
// of the voters have one.
func CompareDigests(
	self state.ServerID, own []Digest, others map[state.ServerID]*Answer, voters map[state.ServerID]bool,
) (v Verdict) {
	for i := len(own) - 1; i >= 0; i-- {
		count, total := map[Digest]int{}, 0
		v = Verdict{Own: own[i]}
		for id := range voters {
			d, ok := own[i], id == self
			if !ok && others[id] != nil && others[id].Halted == "" {
				d, ok = digestAt(others[id].Digests, own[i].Index)
			}
			if !ok {
				continue
			}
			total++
			key := Digest{state.Point{Index: d.Index, History: d.History}, d.State}
			if count[key]++; count[key] > len(voters)/2 {
				v.Majority = &d
			}
			if d.History != own[i].History || d.State != own[i].State {
				v.Differ = append(v.Differ, id)
			}
		}
		if total > len(voters)/2 {
			return v
		}
	}
	return Verdict{}
}

func digestAt(list []Digest, index uint64) (Digest, bool) {
	for _, d := range list {
		if d.Index == index {
			return d, true
		}
	}
	return Digest{}, false
}
