package storage

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// A directory that cannot be made is named with its setting.
func TestOpen_NoDirectory_NamesTheSetting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	below, there := filepath.Join(file, "below"), t.TempDir()
	for setting, c := range map[string]Config{
		"dataDir":    {Dir: below},
		"dataLogDir": {Dir: there, LogDir: below},
	} {
		s, err := Open(c)
		if err == nil {
			t.Error(s.Close())
		} else if !strings.Contains(err.Error(), below) || !strings.Contains(err.Error(), "setting "+setting+":") {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// A directory where a server has never lived has nothing to miss.
func TestOpen_Fresh_IsMade(t *testing.T) {
	s, err := Open(Config{Dir: filepath.Join(t.TempDir(), "new"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	exists, err := raft.HasExistingState(s.Log, s.Stable, s.Snapshots)
	if err = errors.Join(err, s.Close()); exists || err != nil {
		t.Error(exists, err)
	}
}

// Any user of the machine could read every znode's data, whatever its ACL: raft's store of snapshots makes its
// directory and its files readable by everybody.
func TestRegression_Open_OtherUsersReadNothing(t *testing.T) {
	dir, logDir := filepath.Join(t.TempDir(), "new"), filepath.Join(t.TempDir(), "log")
	open := func() {
		t.Helper()
		s, err := Open(Config{Dir: dir, LogDir: logDir, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = errors.Join(s.Identity.Save(Identity{Server: 1}), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(path string, want fs.FileMode) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode().Perm(), err, want)
		}
	}
	open()
	snapshots := filepath.Join(dir, "snapshots")
	for _, path := range []string{dir, logDir, snapshots, filepath.Join(logDir, "raftlog")} {
		check(path, 0o700)
	}
	for _, name := range []string{"identity.json", "stable.db"} {
		check(filepath.Join(dir, name), 0o600)
	}

	// What exists keeps what its operator may have meant: all but others' permissions on the snapshots.
	for _, path := range []string{dir, snapshots} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open()
	check(dir, 0o755)
	check(snapshots, 0o750)
}
