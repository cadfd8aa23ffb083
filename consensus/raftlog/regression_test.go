package raftlog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// spaceOf returns how many bytes the files of a directory occupy.
func spaceOf(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		info, err := f.Info()
		must(t, err)
		bytes += info.Size()
	}
	return bytes
}

// A new log had two segments of 64 MiB at once: 128 MiB for an empty tree, and on a small volume no start.
func TestRegression_Open_NewLogTakesLittleSpace(t *testing.T) {
	tier.Seconds(t)
	dir := t.TempDir()
	s := openDir(t, dir, raftlog.Options{})
	s.Settle()
	if n := spaceOf(t, dir); n > 4<<20 {
		t.Errorf("a new log takes %d bytes", n)
	}
	// An entry that only later segments have room for is taken all the same.
	var want []*raft.Log
	for i, size := range []int{1, 3 << 20, 1, 10 << 20} {
		e := &raft.Log{Index: uint64(i + 1), Term: 1, Data: make([]byte, size)}
		must(t, s.StoreLog(e))
		want = append(want, e)
	}
	checkLog(t, s, want)
	must(t, s.Close())
	s = openDir(t, dir, raftlog.Options{})
	checkLog(t, s, want)
	// The longer the log, the longer its segments, and about as long as it; then it becomes short again.
	s.Settle()
	if n := spaceOf(t, dir); n > 5*13<<20 {
		t.Errorf("13 MiB of entries take %d bytes", n)
	}
	for i := uint64(5); i < 40; i++ {
		must(t, s.StoreLog(&raft.Log{Index: i, Term: 1, Data: make([]byte, 1<<20)}))
	}
	s.Settle()
	if x := s.Stats(); x.Segments > 12 || x.Bytes > 5*50<<20 {
		t.Errorf("50 MiB of entries: %d segments with %d bytes", x.Segments, x.Bytes)
	}
	// The long segment in use and the one prepared, 64 MiB at most each, are filled before short ones come.
	for i := uint64(40); i < 40+2*64+1; i++ {
		must(t, s.StoreLog(&raft.Log{Index: i, Term: 1, Data: make([]byte, 1<<20)}))
		must(t, s.DeleteRange(1, i-1))
		s.Settle() // on a busy machine a segment would else be prepared for a log that has become short meanwhile
	}
	if x := s.Stats(); x.Bytes > 16<<20 {
		t.Errorf("1 MiB of entries takes %d bytes in %d segments", x.Bytes, x.Segments)
	}
}

// Yesterday's manifest, put back because the log's was damaged, had the segments since then deleted before the log
// was refused for want of them: with the right one it could no longer be opened, either.
func TestRegression_Open_OlderManifestDeletesNothing(t *testing.T) {
	dir := t.TempDir()
	manifest := filepath.Join(dir, "manifest")
	read := func() []byte {
		b, err := os.ReadFile(manifest)
		must(t, err)
		return b
	}
	opt := raftlog.Options{SegmentSize: 64 << 10}
	var want []*raft.Log
	grow := func(to uint64) {
		s := openDir(t, dir, opt)
		for i := uint64(len(want) + 1); i <= to; i++ {
			e := &raft.Log{Index: i, Term: 1, Data: make([]byte, 10<<10)}
			must(t, s.StoreLog(e))
			want = append(want, e)
		}
		must(t, s.Close())
	}
	grow(20)
	yesterday := read()
	grow(100)
	today := read()
	must(t, os.WriteFile(manifest, yesterday, 0o600))
	if _, err := raftlog.Open(dir, opt); err == nil || !strings.Contains(err.Error(), "missing segment") {
		t.Fatalf("with yesterday's manifest: got %v, want an error about a missing segment", err)
	}
	must(t, os.WriteFile(manifest, today, 0o600))
	s := openDir(t, dir, opt)
	checkLog(t, s, want)
	must(t, s.Close())
}

// Visit shows the entries of a log that a server has open, and changes nothing.
func TestVisit_LogInUse(t *testing.T) {
	dir := t.TempDir()
	visited := func() (n uint64) {
		t.Helper()
		must(t, raftlog.Visit(dir, raftlog.Options{}, func(l *raft.Log) error {
			if n++; l.Index != n+3 || string(l.Data) != fmt.Sprint("entry ", l.Index) {
				t.Errorf("entry %d: %+v", n, l)
			}
			return nil
		}))
		return n
	}
	if err := raftlog.Visit(dir, raftlog.Options{}, nil); err == nil {
		t.Error("an empty directory is a log")
	}
	s := openDir(t, dir, raftlog.Options{SegmentSize: raftlog.MinSegmentSize})
	for i := range uint64(200) {
		must(t, s.StoreLog(&raft.Log{Index: i + 1, Term: 1, Data: fmt.Append(nil, "entry ", i+1)}))
	}
	must(t, s.DeleteRange(1, 3))
	if n := visited(); n != 197 {
		t.Errorf("%d entries of the log in use", n)
	}
	must(t, s.StoreLog(&raft.Log{Index: 201, Term: 1, Data: []byte("entry 201")}))
	must(t, s.Close())
	if n := visited(); n != 198 {
		t.Errorf("%d entries of the closed log", n)
	}
}
