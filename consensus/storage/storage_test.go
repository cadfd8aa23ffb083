package storage

import (
	"bytes"
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
			t.Errorf("%+v: opened, want an error; closing: %v", c, s.Close())
		} else if !strings.Contains(err.Error(), below) || !strings.Contains(err.Error(), "setting "+setting+":") {
			t.Errorf("%s: error %v, want one that names %s and the setting", setting, err, below)
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
		t.Errorf("new storage: has state: %t, error %v; want neither", exists, err)
	}
}

// Any user of the machine could read every znode's data, whatever its ACL: raft's store of snapshots makes its
// directory and its files readable by everyone.
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

// An upgrade by exchanging the binary looked as if all data were lost: zk-lite served an empty
// tree from ZooKeeper's directory, and mentioned version-2 in no line of its log.
func TestOpen_DataOfZooKeeper_Refused(t *testing.T) {
	for _, setting := range []string{"dataDir", "dataLogDir"} {
		c := Config{Dir: t.TempDir(), LogDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
		foreign := map[string]string{"dataDir": c.Dir, "dataLogDir": c.LogDir}[setting]
		found := filepath.Join(foreign, "version-2")
		for _, dir := range []string{found, filepath.Join(foreign, "snapshots")} { // the latter an operator's copies
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(c)
		if err == nil {
			t.Fatalf("%s: opened; %v", setting, s.Close())
		}
		for _, want := range []string{found, "setting " + setting, "zk-lite import-zookeeper", "docs/operations.md"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in %v", setting, want, err)
			}
		}
		for _, dir := range []string{c.Dir, c.LogDir} {
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != map[bool]int{true: 2}[dir == foreign] {
				t.Errorf("%s: a refused start has left %v in %s, %v", setting, entries, dir, err)
			}
		}
		switch setting { // the remedy: another directory
		case "dataDir":
			c.Dir = t.TempDir()
		case "dataLogDir":
			c.LogDir = t.TempDir()
		}
		if s, err = Open(c); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A server that has run beside ZooKeeper's data has data of its own, and must start again.
func TestOpen_DataOfZooKeeperBesideItsOwn_Mentioned(t *testing.T) {
	var log bytes.Buffer
	c := Config{Dir: t.TempDir(), LogDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	for range 2 {
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(c.LogDir, "version-2"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if want := filepath.Join(c.LogDir, "version-2"); !strings.Contains(log.String(), "level=WARN") ||
		!strings.Contains(log.String(), want) {
		t.Errorf("the log does not warn of %s:\n%s", want, &log)
	}
}
