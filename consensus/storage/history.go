package storage

import (
	"os"
)

const historyName = "history"

// historyFile is the selfcheck.Store of a data directory. It is written in place, and not synced: a torn file is
// recognised by its sum, and nothing durable depends on it.
type historyFile string

func (f historyFile) Load() []byte {
	b, _ := os.ReadFile(string(f))
	return b
}

func (f historyFile) Save(b []byte) error { return os.WriteFile(string(f), b, 0o600) }

// LastIndex returns the index of the last entry in the log, or in the newest snapshot; 0: there is none.
func (s *Store) LastIndex() uint64 {
	last, _ := s.Log.LastIndex()
	if list, err := s.Snapshots.List(); err == nil && len(list) > 0 {
		last = max(last, list[0].Index)
	}
	return last
}
