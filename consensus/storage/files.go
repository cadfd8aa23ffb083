package storage

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// closeToOthers makes a directory that only this server's user may enter. An existing one is closed to other
// users: raft made it, and the files in it, readable by everyone. Its group may stay: that is an operator's
// choice. So may the data directory itself, which is often made by an installation; all data are in
// directories below.
func closeToOthers(dir string, logger *slog.Logger) error {
	const others = 0o007
	if err := os.Mkdir(dir, 0o700); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&others == 0 {
		return err
	}
	if err := os.Chmod(dir, info.Mode()&^others); err != nil {
		logger.Warn("every user of this machine can read the snapshots, which hold all znodes' data; "+
			"take the permissions of others away", "dir", dir, "error", err)
	}
	return nil
}

// CheckIdentity refuses a data directory that belongs to another server. One without an identity belongs to no
// server yet.
func (c *Config) CheckIdentity(server state.ServerID) error {
	id, err := identityFile(filepath.Join(c.Dir, "identity.json")).Load()
	if err != nil || id == nil {
		return err
	}
	return id.Check(server)
}

// Check is CheckIdentity for an identity that has been read.
func (id *Identity) Check(server state.ServerID) error {
	if id.Server == server {
		return nil
	}
	return fmt.Errorf("the data directory belongs to server %d, but this is server %d: check dataDir and myid",
		id.Server, server)
}

// SnapshotTime is when the newest snapshot was written, by its name; false: there is none, or it has another name.
func (s *Store) SnapshotTime() (time.Time, bool) {
	list, err := s.Snapshots.List()
	if err != nil || len(list) == 0 {
		return time.Time{}, false
	}
	millis, err := strconv.ParseInt(list[0].ID[strings.LastIndexByte(list[0].ID, '-')+1:], 10, 64)
	return time.UnixMilli(millis), err == nil
}

// newestSnapshotDir finds the newest finished snapshot by the names that
// raft's FileSnapshotStore gives, "term-index-milliseconds", without believing
// anything inside. Empty if there is none.
func newestSnapshotDir(dir string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "snapshots"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("listing snapshots: %w", err)
	}
	var newest string
	var best [3]uint64
	for _, e := range entries {
		parts := strings.Split(e.Name(), "-")
		if !e.IsDir() || len(parts) != 3 {
			continue // including those that end in .tmp, which were not finished
		}
		var key [3]uint64
		ok := true
		for i, p := range parts {
			key[i], err = strconv.ParseUint(p, 10, 64)
			ok = ok && err == nil
		}
		if ok && (newest == "" || less(best, key)) {
			newest, best = e.Name(), key
		}
	}
	return newest, nil
}

func less(a, b [3]uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// ParseEnsemble reads an ensemble's id as it is written: in hexadecimal.
func ParseEnsemble(text string) (id [16]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("ensemble id %q is not 32 hexadecimal digits", text)
	}
	copy(id[:], b)
	return id, nil
}

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

// kept is a file that must stay in its place while the server runs, since a start looks for it
// there.
type kept struct {
	path string
	info os.FileInfo
}

// keep notes the files and directories that have to stay.
func (s *Store) keep(c *Config) error {
	paths := []string{c.Dir, filepath.Join(c.Dir, stableName), c.LogDir}
	if s.Raftlog != nil {
		paths = append(paths, filepath.Join(c.LogDir, "raftlog"))
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		s.kept = append(s.kept, kept{path, info})
	}
	return nil
}

// Lost reports that a file or directory that this server has open is no longer in its place. The kernel does not
// mind: the server keeps writing, and the next start finds nothing.
func (s *Store) Lost() error {
	for _, k := range s.kept {
		info, err := os.Stat(k.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s was removed while this server has it open", k.path)
		case err == nil && !os.SameFile(info, k.info):
			return fmt.Errorf("%s is another one than this server has open", k.path)
		}
	}
	return nil
}

// InUse reports whether a process has a server's data directory open. An error is why that is not known.
func InUse(dir string) (bool, error) {
	path := filepath.Join(dir, stableName)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Millisecond})
	switch {
	case err == nil:
		return false, db.Close()
	case errors.Is(err, bbolterrors.ErrTimeout):
		return true, nil
	case errors.Is(err, fs.ErrPermission):
		return false, err
	}
	return false, nil // there is none, or one that no server opens
}
