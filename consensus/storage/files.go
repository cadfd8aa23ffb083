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

	"github.com/zk-lite/zk-lite/consensus/state"
)

// closeToOthers makes a directory that only this server's user may enter. One that exists is closed to other
// users: raft made it, and the files in it, readable by everybody. Its group may stay: that is an operator's
// choice. So may the data directory itself, which is often made by an installation; all data lie deeper.
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

// CheckIdentity refuses a data directory that belongs to another server. One without an identity belongs to nobody yet.
func (c *Config) CheckIdentity(server state.ServerID) error {
	id, err := identityFile(filepath.Join(c.Dir, "identity.json")).Load()
	if err != nil || id == nil {
		return err
	}
	return id.Check(server)
}

// Check is CheckIdentity of an identity that has been read.
func (id *Identity) Check(server state.ServerID) error {
	if id.Server == server {
		return nil
	}
	return fmt.Errorf("the data directory belongs to server %d, but this is server %d: check dataDir and myid",
		id.Server, server)
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
			continue // among them those with .tmp behind, which were not finished
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
