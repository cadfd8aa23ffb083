package storage

import (
	"errors"
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
