package raftlog_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

const (
	logDir  = "/log"
	hwFile  = logDir + "/highwater"
	manFile = logDir + "/manifest"
	segSize = 8192
)

func openFault(t testing.TB, f *faultfs.FS, opt raftlog.Options) *raftlog.Store {
	t.Helper()
	s, err := tryOpen(f, opt)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func tryOpen(f *faultfs.FS, opt raftlog.Options) (*raftlog.Store, error) {
	opt.FS = f
	if opt.SegmentSize == 0 {
		opt.SegmentSize = segSize
	}
	if opt.CacheEntries == 0 {
		opt.CacheEntries = -1 // every read goes to the disk
	}
	return raftlog.Open(logDir, opt)
}

// smallLog fills three segments with everything a log can contain, and returns its entries. Every
// append is synchronous, so all of it is durable.
func smallLog(t *testing.T, s *raftlog.Store) []*raft.Log {
	t.Helper()
	must(t, s.StoreLogs(entries(1, 40, 1)))
	must(t, s.DeleteRange(35, 40))
	must(t, s.StoreLogs(entries(35, 50, 2)))
	must(t, s.DeleteRange(1, 5))
	must(t, s.StoreLogs(entries(51, 60, 3)))
	must(t, s.StoreLog(entry(61, 3)))
	must(t, s.StoreLog(entry(62, 3)))
	s.Settle()
	return join(join(entries(6, 34, 1), entries(35, 50, 2)), entries(51, 62, 3))
}

// outcome opens a damaged log. It returns nil entries and the refusal, or the entries read.
func outcome(f *faultfs.FS) ([]*raft.Log, error) {
	s, err := tryOpen(f, raftlog.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	var got []*raft.Log
	for i := first; i <= last && i > 0; i++ {
		var e raft.Log
		if err := s.GetLog(i, &e); err != nil {
			return nil, fmt.Errorf("GetLog(%d): %w", i, err)
		}
		got = append(got, &e)
	}
	return got, nil
}

// isPrefix reports whether got is the beginning of want.
func isPrefix(got, want []*raft.Log) bool {
	if len(got) > len(want) {
		return false
	}
	for i := range got {
		if !sameEntry(got[i], want[i]) {
			return false
		}
	}
	return true
}

// checkRefusal verifies that err names a file that exists, or existed, and a place.
func checkRefusal(t *testing.T, what string, err error) {
	t.Helper()
	var corrupt *raftlog.CorruptError
	if !errors.As(err, &corrupt) || corrupt.File == "" || corrupt.Reason == "" ||
		!strings.HasPrefix(corrupt.File, logDir) {
		t.Fatalf("%s: refused with %v, want a *CorruptError that names the file", what, err)
	}
}

// Goal: no flipped byte anywhere is returned as right or costs an entry that was durable. Method:
// flip every byte of every file of a killed server's log, and some of a closed one's, and open it.
func TestOpen_FlippedByte_RefusesOrReadsAll(t *testing.T) {
	for closed, stride := range map[bool]int{true: 7, false: 1} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			t.Parallel()
			f := faultfs.New(1, 512)
			s := openFault(t, f, raftlog.Options{})
			want := smallLog(t, s)
			if closed {
				must(t, s.Close())
			}
			refused, read := 0, 0
			for _, name := range f.Files() {
				for off := range f.ReadFile(name) {
					if off%stride != 0 {
						continue
					}
					what := fmt.Sprintf("%s byte %d", name, off)
					c := f.Clone(1)
					c.Damage(name, func(b []byte) []byte { b[off] ^= 0x10; return b })
					got, err := outcome(c)
					if err != nil {
						checkRefusal(t, what, err)
						refused++
						continue
					}
					read++
					if len(got) != len(want) || !isPrefix(got, want) {
						t.Fatalf("%s: read %d of %d entries", what, len(got), len(want))
					}
				}
			}
			t.Logf("%d refused, %d read in full", refused, read)
			if refused == 0 || read == 0 {
				t.Fatal("the test did not see both outcomes")
			}
		})
	}
}

// Records that were never durable may go, but only from the end on: with no high-water file and the manifest of the
// start, the marks in the records alone decide.
func TestOpen_FlippedByteWithoutHighWater_LosesLastAppendsOnly(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	f := faultfs.New(1, 512)
	s := openFault(t, f, raftlog.Options{SegmentSize: 20 << 10})
	old := f.ReadFile(manFile)
	want := smallLog(t, s)
	if n := s.Stats().Segments; n != 1 {
		t.Fatalf("%d segments, the test needs all records in one", n)
	}
	f.Damage(manFile, func([]byte) []byte { return old })
	f.Lose(hwFile)
	name := logDir + "/00000001.seg"
	refused, shorter := 0, 0
	for off := range 16384 {
		c := f.Clone(1)
		c.Damage(name, func(b []byte) []byte { b[off] ^= 0x80; return b })
		got, err := outcome(c)
		if err != nil {
			checkRefusal(t, fmt.Sprintf("byte %d", off), err)
			refused++
			continue
		}
		// Only the last append lies above every mark.
		if len(got) < len(want)-1 || !isPrefix(got, want) {
			t.Fatalf("byte %d: read %d of %d entries", off, len(got), len(want))
		}
		if len(got) < len(want) {
			shorter++
		}
	}
	t.Logf("%d refused, %d lost the last append", refused, shorter)
	if refused == 0 || shorter == 0 {
		t.Fatal("the test did not see both outcomes")
	}
}

// A file that is shorter than it was made is damage whatever was in it.
func TestOpen_CutFile_Refuses(t *testing.T) {
	tier.Seconds(t)
	f := faultfs.New(1, 512)
	want := smallLog(t, openFault(t, f, raftlog.Options{}))
	for _, name := range f.Files() {
		content := f.ReadFile(name)
		for n := range content {
			c := f.Clone(1)
			c.Damage(name, func(b []byte) []byte { return b[:n] })
			got, err := outcome(c)
			switch {
			case err != nil:
				checkRefusal(t, fmt.Sprintf("%s cut at %d", name, n), err)
			case len(got) != len(want) || !isPrefix(got, want):
				t.Fatalf("%s cut at %d: read %d of %d entries", name, n, len(got), len(want))
			case strings.HasSuffix(name, ".seg"):
				t.Fatalf("%s cut at %d: accepted", name, n)
			}
		}
	}
}

// Zeros from any byte of the log on, as if the end of the file had never been written.
func TestOpen_ZeroedEnd_RefusesOrReadsDurablePrefix(t *testing.T) {
	for _, highWater := range []bool{true, false} {
		t.Run(fmt.Sprintf("highwater=%v", highWater), func(t *testing.T) {
			t.Parallel()
			f := faultfs.New(1, 512)
			s := openFault(t, f, raftlog.Options{SegmentSize: 16 << 10})
			old := f.ReadFile(manFile)
			must(t, s.StoreLogs(entries(1, 30, 1)))
			must(t, s.StoreLog(entry(31, 1)))
			must(t, s.StoreLog(entry(32, 1)))
			s.Settle()
			want := entries(1, 32, 1)
			if !highWater {
				f.Damage(manFile, func([]byte) []byte { return old })
				f.Lose(hwFile)
			}
			name := logDir + "/00000001.seg"
			content := f.ReadFile(name)
			refused := 0
			for n := 4096; n < 12000; n++ {
				if content[n] == 0 {
					continue
				}
				c := f.Clone(1)
				c.Damage(name, func(b []byte) []byte { clear(b[n:]); return b })
				got, err := outcome(c)
				switch {
				case err != nil:
					checkRefusal(t, fmt.Sprintf("zeros from %d", n), err)
					refused++
				case !isPrefix(got, want), highWater && len(got) < len(want):
					t.Fatalf("zeros from %d: read %d of %d entries", n, len(got), len(want))
				}
			}
			if highWater && refused == 0 {
				t.Fatal("the test saw no refusal")
			}
		})
	}
}

func TestOpen_LostFile_Refuses(t *testing.T) {
	f := faultfs.New(1, 512)
	want := smallLog(t, openFault(t, f, raftlog.Options{}))
	for _, name := range f.Files() {
		c := f.Clone(1)
		c.Lose(name)
		got, err := outcome(c)
		switch base := filepath.Base(name); {
		case base == "highwater" || base == "manifest.tmp":
			if err != nil || len(got) != len(want) || !isPrefix(got, want) {
				t.Errorf("%s lost: %d entries, %v; the log can do without it", name, len(got), err)
			}
		case err == nil:
			t.Errorf("%s lost: accepted", name)
		default:
			checkRefusal(t, name+" lost", err)
		}
	}
}

// A segment put back from an earlier copy, or taken from another server, is not this log's.
func TestOpen_ForeignSegment_Refuses(t *testing.T) {
	f, g := faultfs.New(1, 512), faultfs.New(2, 512)
	smallLog(t, openFault(t, f, raftlog.Options{}))
	smallLog(t, openFault(t, g, raftlog.Options{}))
	name := logDir + "/00000002.seg"
	c := f.Clone(1)
	c.Damage(name, func([]byte) []byte { return g.ReadFile(name) })
	_, err := outcome(c)
	checkRefusal(t, "segment of another log", err)
	c = f.Clone(1)
	c.Damage(name, func([]byte) []byte { return f.ReadFile(logDir + "/00000001.seg") })
	_, err = outcome(c)
	checkRefusal(t, "another segment", err)
}

func TestStore_GetLog_FlippedByte_Refuses(t *testing.T) {
	f := faultfs.New(1, 512)
	s := openFault(t, f, raftlog.Options{})
	want := smallLog(t, s)
	for _, name := range f.Files() {
		if !strings.HasSuffix(name, ".seg") {
			continue
		}
		for off := range f.ReadFile(name) {
			flip := func(b []byte) []byte { b[off] ^= 0x01; return b }
			f.Damage(name, flip)
			for _, w := range want {
				if off%7 != int(w.Index)%7 { // a seventh of the pairs is enough, and faster
					continue
				}
				var got raft.Log
				if err := s.GetLog(w.Index, &got); err != nil {
					var corrupt *raftlog.CorruptError
					if !errors.As(err, &corrupt) || corrupt.Index != w.Index ||
						corrupt.File != name || corrupt.Offset > int64(off) {
						t.Fatalf("%s byte %d: GetLog(%d): %v", name, off, w.Index, err)
					}
				} else if !sameEntry(&got, w) {
					t.Fatalf("%s byte %d: GetLog(%d) returned wrong data", name, off, w.Index)
				}
			}
			f.Damage(name, flip)
		}
	}
}
