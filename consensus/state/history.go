package state

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Point is an entry's place in the history of the log. Two servers have the same History at an index if they
// applied the same entries up to there.
type Point struct {
	Index   uint64 `json:"index"`
	Term    uint64 `json:"term"`
	Time    int64  `json:"time"` // of the entry or one before, milliseconds since the epoch
	History uint64 `json:"history"`
}

// Chain adds an applied entry, also one of Raft's configurations, to the history, which becomes the hash of the
// former one, the entry's index and term, and the hash of its bytes.
func (m *Machine) Chain(index, term uint64, entry []byte) Point {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], m.history)
	binary.LittleEndian.PutUint64(b[8:], index)
	binary.LittleEndian.PutUint64(b[16:], term)
	binary.LittleEndian.PutUint64(b[24:], xxhash.Sum64(entry))
	m.term, m.history = term, max(1, xxhash.Sum64(b[:]))
	return m.Point()
}

// Point is the place of the last entry that was applied; its History is 0 if that is not known, as in a backup.
func (m *Machine) Point() Point { return Point{m.index, m.term, m.time, m.history} }

// Point is the place of the last entry in the snapshot.
func (s *Snapshot) Point() Point { return Point{s.index, s.term, s.time, s.history} }
