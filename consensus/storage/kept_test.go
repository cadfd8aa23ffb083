package storage

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No one noticed that the data directory of a running server was removed, or exchanged: the server wrote on, and
// its next start found nothing of what it had acknowledged.
func TestRegression_Store_DataThatIsGone(t *testing.T) {
	for name, x := range map[string]struct {
		change func(dir, log string) error
		want   string
	}{
		"nothing": {func(string, string) error { return nil }, ""},
		"removed": {func(dir, _ string) error { return os.RemoveAll(dir) }, "data was removed"},
		"moved":   {func(dir, _ string) error { return os.Rename(dir, dir+".old") }, "data was removed"},
		"the log": {func(_, log string) error { return os.Rename(log, log+".old") }, "log was removed"},
		"a copy": {func(dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.CopyFS(dir, os.DirFS(dir+".old")))
		}, "data is another one"},
		"a file": {func(dir, _ string) error { return os.Remove(filepath.Join(dir, stableName)) }, "stable.db was removed"},
		"segments": {func(_, log string) error { // which the server may be making
			return os.Rename(filepath.Join(log, "raftlog"), filepath.Join(log, "old"))
		}, "raftlog was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, log := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "log")
			s, err := Open(Config{Dir: dir, LogDir: log, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := x.change(dir, log); err != nil {
				t.Fatal(err)
			}
			got := s.Lost()
			if (got == nil) != (x.want == "") || got != nil && !strings.Contains(got.Error(), x.want) {
				t.Errorf("%v, want %q", got, x.want)
			}
		})
	}
}
