package selfcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
)

const (
	// recentPoints is of how many entries every point is kept.
	recentPoints = 1024
	// stride is how many indexes before those share a point: the last one.
	stride = 1024
	// olderPoints bounds those: together they reach back a million entries.
	olderPoints = 1024
	// keptDigests is how many digests are kept: the others may be that many behind.
	keptDigests = 8
)

// Digest is that of the state after an entry.
type Digest struct {
	state.Point
	State uint64 `json:"state"`
}

// Record is what a server has applied. Its methods may be called by any goroutine.
type Record struct {
	mu      sync.Mutex                // protects the fields below
	recent  [recentPoints]state.Point // the point of number n is at n % recentPoints
	first   uint64                    // number of the oldest one
	next    uint64                    // number of the next one
	older   []state.Point
	digests []Digest
	voters  []state.ServerID // as of the newest point
	saved   uint64           // next, as it was saved
}

// Add notes the point of the entry that was applied last. With gap, entries before it have not been seen, since a
// snapshot has come. It returns false, and notes nothing, if the record has another history there: then what this
// server applies now is not what it has applied before.
func (r *Record) Add(p state.Point, gap bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := r.newestLocked()
	switch {
	case newest.Index >= p.Index: // applied again after a restart
		have, known := r.atLocked(p.Index)
		return !known || have.History == p.History
	case gap:
		r.keepLocked(newest)
		r.first = r.next
	case newest.Index/stride != p.Index/stride:
		r.keepLocked(newest)
	}
	r.recent[r.next%recentPoints] = p
	r.next++
	r.first = max(r.first, r.next-min(r.next, recentPoints))
	return true
}

// keepLocked keeps the last point before a gap, or before a multiple of stride.
func (r *Record) keepLocked(p state.Point) {
	if p.Index == 0 {
		return
	}
	if len(r.older) >= olderPoints {
		r.older = slices.Delete(r.older, 0, 1)
	}
	r.older = append(r.older, p)
}

// Newest is the point of the last entry; its Index is 0 before the first.
func (r *Record) Newest() state.Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newestLocked()
}

func (r *Record) newestLocked() (p state.Point) {
	if r.next > r.first {
		p = r.recent[(r.next-1)%recentPoints]
	}
	return p
}

// At returns the point of the last entry up to an index, if it is known: entries of Raft's own have none.
func (r *Record) At(index uint64) (state.Point, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.atLocked(index)
}

func (r *Record) atLocked(index uint64) (p state.Point, known bool) {
	if index > r.newestLocked().Index {
		return p, false
	}
	for n := r.next; n > r.first; n-- {
		if x := r.recent[(n-1)%recentPoints]; x.Index <= index {
			return x, true
		}
	}
	i := slices.IndexFunc(r.older, func(x state.Point) bool { return x.Index == index })
	if i < 0 {
		return p, false
	}
	return r.older[i], true
}

// Between returns the indexes of some points between two others, in order: evenly many between any two.
func (r *Record) Between(low, high uint64) (list []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]uint64, 0, len(r.older)+recentPoints)
	add := func(p state.Point) {
		if p.Index > low && p.Index < high {
			all = append(all, p.Index)
		}
	}
	for _, p := range r.older {
		if r.next == r.first || p.Index < r.recent[r.first%recentPoints].Index {
			add(p)
		}
	}
	for n := r.first; n < r.next; n++ {
		add(r.recent[n%recentPoints])
	}
	step := max(1, len(all)/MaxIndexes+1)
	for i := step / 2; i < len(all); i += step {
		list = append(list, all[i])
	}
	return list
}

// SetVoters notes who votes from the next point on.
func (r *Record) SetVoters(ids []state.ServerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.voters = ids
}

// Voters are those as of the newest point; none: it is not known.
func (r *Record) Voters() []state.ServerID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.voters
}

// AddDigest notes the digest of the state at a point.
func (r *Record) AddDigest(d Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.digests) == keptDigests {
		r.digests = slices.Delete(r.digests, 0, 1)
	}
	r.digests = append(r.digests, d)
}

// Digests are the newest, the oldest of them first.
func (r *Record) Digests() []Digest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.digests)
}

// The file: magic, the numbers of older points and of voters, the voters, the points, the sum of all that.
const (
	fileMagic  = "zkh\x01"
	fileHead   = len(fileMagic) + 8
	pointBytes = 32
)

// Save encodes the points; nil if there is nothing new since it was called last.
func (r *Record) Save() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == r.saved {
		return nil
	}
	r.saved = r.next
	b := make([]byte, 0, fileHead+8*len(r.voters)+pointBytes*(len(r.older)+recentPoints)+8)
	b = binary.LittleEndian.AppendUint32(append(b, fileMagic...), uint32(len(r.older)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.voters)))
	for _, id := range r.voters {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
	}
	for _, p := range r.older {
		b = appendPoint(b, p)
	}
	for n := r.first; n < r.next; n++ {
		b = appendPoint(b, r.recent[n%recentPoints])
	}
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

func appendPoint(b []byte, p state.Point) []byte {
	for _, v := range [...]uint64{p.Index, p.Term, uint64(p.Time), p.History} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Load returns a record with what Save has encoded.
func Load(b []byte) (*Record, error) {
	body := len(b) - 8
	if body < fileHead || string(b[:len(fileMagic)]) != fileMagic {
		return nil, fmt.Errorf("the history is not of this version, or cut off: it has %d bytes", len(b))
	}
	if binary.LittleEndian.Uint64(b[body:]) != xxhash.Sum64(b[:body]) {
		return nil, errors.New("the history is damaged: its sum is wrong")
	}
	older, voters := binary.LittleEndian.Uint32(b[len(fileMagic):]), binary.LittleEndian.Uint32(b[len(fileMagic)+4:])
	n := body - fileHead - 8*int(voters)
	points := n / pointBytes
	if n < 0 || n%pointBytes != 0 || int(older) > min(points, olderPoints) || points-int(older) > recentPoints {
		return nil, fmt.Errorf("the history is damaged: %d bytes for %d old points and %d voters",
			len(b), older, voters)
	}
	r := &Record{}
	at := b[fileHead:body]
	next := func() (v uint64) {
		v, at = binary.LittleEndian.Uint64(at), at[8:]
		return v
	}
	for range voters {
		r.voters = append(r.voters, state.ServerID(next()))
	}
	for i := range points {
		p := state.Point{Index: next(), Term: next(), Time: int64(next()), History: next()}
		if i < int(older) {
			r.older = append(r.older, p)
			continue
		}
		r.recent[r.next] = p
		r.next++
	}
	r.saved = r.next
	// The last of the older ones are among the recent ones, too.
	if !rising(r.older) || !rising(r.recent[:r.next]) {
		return nil, errors.New("the history is damaged: its indexes do not rise")
	}
	return r, nil
}

func rising(points []state.Point) bool {
	last := uint64(0)
	for _, p := range points {
		if p.Index <= last {
			return false
		}
		last = p.Index
	}
	return true
}
