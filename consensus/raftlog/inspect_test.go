package raftlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// inspect returns what Inspect finds, a line for each record.
func inspect(path string, dir bool) (lines []string, err error) {
	err = raftlog.Inspect(path, dir, func(f *raftlog.Found) error {
		line := fmt.Sprintf("%s %d", f.Kind, f.Index)
		if f.Kind == raftlog.FoundEntry {
			if want := entry(f.Index, f.Term); !bytes.Equal(f.Data, want.Data) || !f.Time.Equal(want.AppendedAt) ||
				f.Type != want.Type.String() {
				return fmt.Errorf("entry %d is %v %v %x", f.Index, f.Type, f.Time, f.Data)
			}
		}
		lines = append(lines, line)
		return nil
	})
	return lines, err
}

// Every record is shown, of a log that is open and of one that is closed, and nothing is changed.
func TestInspect_ShowsAllRecords(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir, raftlog.Options{SegmentSize: 8192})
	must(t, s.StoreLogs(entries(1, 30, 1)))
	must(t, s.DeleteRange(21, 30))
	must(t, s.StoreLogs(entries(21, 90, 2)))
	must(t, s.DeleteRange(1, 2))
	check := func(when string) {
		t.Helper()
		before := ""
		if when == "closed" { // an open log makes its next segment meanwhile
			before = contentOf(t, dir)
		}
		got, err := inspect(dir, true)
		if err != nil {
			t.Fatalf("%s: Inspect = %v", when, err)
		}
		if when == "closed" && contentOf(t, dir) != before {
			t.Errorf("%s: Inspect changed the files", when)
		}
		var entries []string
		for _, line := range got {
			if strings.HasPrefix(line, "entry") {
				entries = append(entries, line)
			}
		}
		for _, want := range []string{"suffix 21", "prefix 3", "seal 0", "open 0"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s: there is no %q in %q", when, want, got)
			}
		}
		if len(entries) != 30+70 || got[len(got)-1] != "end 90" {
			t.Errorf("%s: %d entries, the last record is %q; want 100 and \"end 90\"", when, len(entries), got[len(got)-1])
		}
	}
	check("open")
	must(t, s.Close())
	check("closed")
	one, err := inspect(filepath.Join(dir, "00000001.seg"), false)
	if err != nil || one[0] != "start 0" || one[len(one)-2] != "seal 0" {
		t.Errorf("one segment: %v, %q", err, one)
	}
}

// What comes before the damage is shown, whether a directory or one segment is read.
func TestInspect_Damage_ShowsWhatIsBefore(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir, raftlog.Options{})
	must(t, s.StoreLogs(entries(1, 30, 1)))
	must(t, s.Close())
	name := filepath.Join(dir, "00000001.seg")
	b, err := os.ReadFile(name)
	must(t, err)
	at := bytes.Index(b, entry(20, 1).Data)
	b[at] ^= 1
	must(t, os.WriteFile(name, b, 0o600))
	for _, path := range []string{dir, name} {
		lines, err := inspect(path, path == dir)
		var corrupt *raftlog.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Index != 20 || corrupt.File != name || corrupt.Offset >= int64(at) {
			t.Errorf("%s: %v, want a *CorruptError of entry 20 before byte %d", path, err, at)
		}
		if n := len(lines); n < 19 || lines[n-1] != "entry 19" {
			t.Errorf("%s: %d records before the damage, %q", path, n, lines)
		}
	}
}

// contentOf is the content of all files.
func contentOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	names, err := os.ReadDir(dir)
	must(t, err)
	for _, x := range names {
		b, err := os.ReadFile(filepath.Join(dir, x.Name()))
		must(t, err)
		fmt.Fprintf(&all, "%s %d %x", x.Name(), len(b), b)
	}
	return all.String()
}
