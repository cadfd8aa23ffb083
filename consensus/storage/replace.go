package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/durable"
)

// Names in a data directory.
const (
	identityName = "identity.json"
	stableName   = "stable.db"
	newName      = "recover.new" // where Replace builds the new files
)

// Identity reads whom the data directory belongs to, and makes nothing; nil: no server yet.
func (c *Config) Identity() (*Identity, error) {
	return identityFile(filepath.Join(c.Dir, identityName)).Load()
}

// Term reads raft's term from a store that is not in use.
func Term(s raft.StableStore) (uint64, error) {
	t, err := openTerms(s, nil)
	if err != nil {
		return 0, err
	}
	return t.term, nil
}

// SetTerm writes raft's term into a new store.
func SetTerm(s raft.StableStore, term uint64) error { return s.SetUint64([]byte(keyTerm), term) }

// Begin gives a new store its content: a snapshot of the state, with raft's configuration as of its last entry, and
// that entry's term. The log stays empty. It returns when all is durable; after a crash it may be repeated, unless
// there is a snapshot.
func (s *Store) Begin(m *state.Machine, c raft.Configuration) error {
	at := m.Point()
	if err := SetTerm(s.Stable, at.Term); err != nil {
		return fmt.Errorf("writing raft's term: %w", err)
	}
	_, bare := raft.NewInmemTransport("") // which encodes nothing here
	sink, err := s.Snapshots.Create(raft.SnapshotVersionMax, at.Index, at.Term, c, at.Index, bare)
	if err != nil {
		return fmt.Errorf("writing the first snapshot: %w", err)
	}
	content := m.Snapshot()
	defer content.Release()
	if err := content.Write(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// Replace puts a new store, which fill writes, in the place of one that no process has open. The former files are
// moved into a directory beside it, in dataDir and in dataLogDir; its name is returned.
//
// A crash in between leaves an identity without stable.db, with which no server starts (openStable): that file is
// removed first, and added last.
func Replace(c Config, now time.Time, fill func(*Store) error) (kept string, err error) {
	if c.LogDir == "" {
		c.LogDir = c.Dir
	}
	kept = "before-recover-" + now.UTC().Format("20060102T150405Z")
	next := c
	next.Dir, next.LogDir = filepath.Join(c.Dir, newName), filepath.Join(c.LogDir, newName)
	for _, dir := range []string{next.Dir, next.LogDir} {
		if err := os.RemoveAll(dir); err != nil { // of an earlier attempt
			return "", fmt.Errorf("making a new store: %w", err)
		}
	}
	s, err := Open(next)
	if err == nil {
		err = errors.Join(fill(&s), s.Close())
	}
	if err != nil {
		return "", fmt.Errorf("making a new store in %s: %w", next.Dir, err)
	}
	for _, dir := range []string{c.Dir, c.LogDir} {
		if err := os.MkdirAll(filepath.Join(dir, kept), 0o700); err != nil {
			return "", fmt.Errorf("making room for the old store: %w", err)
		}
	}
	if err := exchange(&c, &next, kept); err != nil {
		return "", fmt.Errorf("putting the new store in place: %w; what was there before is in %s: move it back, and "+
			"try again", err, filepath.Join(c.Dir, kept))
	}
	return kept, nil
}

func exchange(c, next *Config, kept string) error {
	old, err := os.ReadFile(filepath.Join(c.Dir, identityName))
	if err == nil {
		err = durable.WriteFile(filepath.Join(c.Dir, kept, identityName), old)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	type move struct{ from, to string }
	var moves []move
	for _, name := range []string{stableName, "snapshots", "peers.json", historyName} {
		moves = append(moves, move{filepath.Join(c.Dir, name), filepath.Join(c.Dir, kept, name)})
	}
	for _, name := range []string{"raftlog", "raftlog.db"} {
		moves = append(moves, move{filepath.Join(c.LogDir, name), filepath.Join(c.LogDir, kept, name)},
			move{filepath.Join(next.LogDir, name), filepath.Join(c.LogDir, name)})
	}
	for _, name := range []string{"snapshots", identityName, stableName} {
		moves = append(moves, move{filepath.Join(next.Dir, name), filepath.Join(c.Dir, name)})
	}
	for _, m := range moves {
		if err := os.Rename(m.from, m.to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := syncDir(filepath.Dir(m.to)); err != nil { // the order matters
			return err
		}
	}
	return errors.Join(os.RemoveAll(next.Dir), os.RemoveAll(next.LogDir))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
