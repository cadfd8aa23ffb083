package storage

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// filled returns the directories of a server whose log has the entries first to last, with a snapshot at index
// snapshot, or none if it is 0.
func filled(t *testing.T, first, last, snapshot uint64) Config {
	t.Helper()
	c := Config{Dir: t.TempDir(), LogDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	err = SetTerm(s.Stable, 1)
	for i := uint64(1); i <= last && err == nil; i++ {
		err = s.Log.StoreLog(&raft.Log{Index: i, Term: 1, Data: []byte("x")})
	}
	for i := range 200 { // several pages
		err = errors.Join(err, s.Stable.SetUint64(fmt.Appendf(nil, "%0100d", i), 1))
	}
	if first > 1 {
		err = errors.Join(err, s.Log.DeleteRange(1, first-1))
	}
	if snapshot > 0 {
		sink, made := s.Snapshots.Create(1, snapshot, 1, raft.Configuration{}, 1, nil)
		if err = errors.Join(err, made); err == nil {
			_, err = io.WriteString(sink, "state")
			err = errors.Join(err, sink.Close())
		}
	}
	err = errors.Join(err, s.Identity.Save(Identity{Ensemble: [16]byte{1}, Server: 1}), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantRefused opens the storage and wants an error with all of these.
func wantRefused(t *testing.T, c Config, want ...string) {
	t.Helper()
	s, err := Open(c)
	if err == nil {
		_ = s.Close()
		t.Fatal("got no error")
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q in it", err, text)
		}
	}
}

// A server that had lost its data directory, or had not mounted it, but kept its log, panicked at each start, or took
// over the log with another identity and without its vote.
func TestRegression_Open_LogAndSnapshotsBelongTogether(t *testing.T) {
	snapshots := func(c Config) string { return filepath.Join(c.Dir, "snapshots") }
	c := filled(t, 50, 100, 60)
	s, err := Open(c)
	if err != nil {
		t.Fatalf("with all files: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(snapshots(c)); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, c, c.LogDir, "begins with entry 50", c.Dir, "end at entry 0", remedy)

	wantRefused(t, filled(t, 50, 100, 40), "begins with entry 50", "end at entry 40")

	for _, first := range []uint64{1, 50} {
		c := filled(t, first, 100, first)
		if err := errors.Join(os.RemoveAll(c.Dir), os.Mkdir(c.Dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, c, c.LogDir, fmt.Sprintf("entries %d to 100", first), c.Dir, "is its disk mounted?")
		if _, err := os.Stat(filepath.Join(c.Dir, identityName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it has an identity now: %v", err)
		}
	}
}

// A page that was damaged had bbolt panic, and one that was cut off had the kernel end the process, without a path or a
// remedy.
func TestRegression_Open_DamagedTermAndVote(t *testing.T) {
	for name, damage := range map[string]func(f *os.File, size int64) error{
		"all pages but the first two": func(f *os.File, size int64) error {
			_, err := f.WriteAt(make([]byte, size-2*4096), 2*4096)
			return err
		},
		"8192 bytes": func(f *os.File, _ int64) error { return f.Truncate(8192) },
		"5000 bytes": func(f *os.File, _ int64) error { return f.Truncate(5000) },
		"4096 bytes": func(f *os.File, _ int64) error { return f.Truncate(4096) },
		"no magic":   func(f *os.File, _ int64) error { _, err := f.WriteAt(make([]byte, 8192), 0); return err },
	} {
		t.Run(name, func(t *testing.T) {
			c := filled(t, 1, 10, 0)
			path := filepath.Join(c.Dir, stableName)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Stat()
			if err == nil {
				err = damage(f, info.Size())
			}
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, c, path, "it is damaged", remedy)
		})
	}
}

// The logs of two servers, exchanged, were taken over without a word, and so was a stable.db that had lost its last
// write: both had forgotten acknowledged entries, or a vote.
func TestRegression_Open_LogAndTermBelongTogether(t *testing.T) {
	a, b := filled(t, 1, 20, 0), filled(t, 1, 20, 0)
	a.LogDir, b.LogDir = b.LogDir, a.LogDir
	wantRefused(t, a, "is not the one that this server has written", a.LogDir, a.Dir, remedy)
	wantRefused(t, b, "is not the one that this server has written")

	c := filled(t, 1, 20, 0)
	path := filepath.Join(c.Dir, stableName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(c)
	if err == nil {
		err = errors.Join(SetTerm(s.Stable, 2), s.Log.StoreLog(&raft.Log{Index: 21, Term: 2}), s.Close())
	}
	if err = errors.Join(err, os.WriteFile(path, before, 0o600)); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, c, "has term 1", "an entry of term 2", path, remedy)
}
