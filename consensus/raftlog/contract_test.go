package raftlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// engines are the stores that the contract is checked against. raft-boltdb is there to prove that
// the tests ask for nothing that Raft's usual store does not do.
func engines() map[string]func(testing.TB) raft.LogStore {
	return map[string]func(testing.TB) raft.LogStore{
		"raftlog": func(t testing.TB) raft.LogStore {
			return openDir(t, t.TempDir(), raftlog.Options{SegmentSize: 1 << 16, CacheEntries: 4})
		},
		"raftlog uncached": func(t testing.TB) raft.LogStore {
			return openDir(t, t.TempDir(), raftlog.Options{SegmentSize: 8192, CacheEntries: -1})
		},
		"raft-boltdb": func(t testing.TB) raft.LogStore {
			b, err := raftboltdb.NewBoltStore(filepath.Join(t.TempDir(), "bolt"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			return b
		},
	}
}

func openDir(t testing.TB, dir string, opt raftlog.Options) *raftlog.Store {
	t.Helper()
	s, err := raftlog.Open(dir, opt)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, raftlog.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func entry(i, term uint64) *raft.Log {
	return &raft.Log{
		Index: i, Term: term, Type: raft.LogType(i % 6),
		Data:       bytes.Repeat([]byte{byte(i), byte(term)}, int(i%90)),
		Extensions: bytes.Repeat([]byte{byte(i)}, int(i%3)),
		AppendedAt: time.Unix(int64(i), int64(term)).UTC(),
	}
}

func entries(first, last, term uint64) []*raft.Log {
	var es []*raft.Log
	for i := first; i <= last; i++ {
		es = append(es, entry(i, term))
	}
	return es
}

func sameEntry(a, b *raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type &&
		bytes.Equal(a.Data, b.Data) && bytes.Equal(a.Extensions, b.Extensions) &&
		a.AppendedAt.Equal(b.AppendedAt)
}

// checkLog verifies that s holds exactly the entries given.
func checkLog(t testing.TB, s raft.LogStore, want []*raft.Log) {
	t.Helper()
	if err := compareLog(s, want); err != nil {
		t.Fatal(err)
	}
}

func compareLog(s raft.LogStore, want []*raft.Log) error {
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	var wantFirst, wantLast uint64
	if len(want) > 0 {
		wantFirst, wantLast = want[0].Index, want[len(want)-1].Index
	}
	if first != wantFirst || last != wantLast {
		return fmt.Errorf("log %d-%d, want %d-%d", first, last, wantFirst, wantLast)
	}
	for _, w := range want {
		var got raft.Log
		if err := s.GetLog(w.Index, &got); err != nil {
			return fmt.Errorf("GetLog(%d): %w", w.Index, err)
		}
		if !sameEntry(&got, w) {
			return fmt.Errorf("GetLog(%d) = %+v, want %+v", w.Index, got, *w)
		}
	}
	for _, i := range []uint64{0, wantFirst - 1, wantLast + 1} {
		if i >= wantFirst && i <= wantLast && len(want) > 0 {
			continue
		}
		if err := s.GetLog(i, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
			return fmt.Errorf("GetLog(%d): %v, want ErrLogNotFound", i, err)
		}
	}
	return nil
}

// contractStep is a call and the content of the log afterwards.
type contractStep struct {
	name string
	do   func(raft.LogStore) error
	want []*raft.Log
}

func store(es []*raft.Log) func(raft.LogStore) error {
	return func(s raft.LogStore) error { return s.StoreLogs(es) }
}

func del(lo, hi uint64) func(raft.LogStore) error {
	return func(s raft.LogStore) error { return s.DeleteRange(lo, hi) }
}

func join(a, b []*raft.Log) []*raft.Log { return append(append([]*raft.Log(nil), a...), b...) }

func contracts() map[string][]contractStep {
	one := entry(1, 1)
	return map[string][]contractStep{
		"empty": {
			{"nothing", func(raft.LogStore) error { return nil }, nil},
			{"store nothing", store(nil), nil},
			{"delete nothing", del(1, 10), nil},
		},
		"append": {
			{"one", func(s raft.LogStore) error { return s.StoreLog(one) }, []*raft.Log{one}},
			{"many", store(entries(2, 300, 1)), entries(1, 300, 1)},
			{"more", store(entries(301, 310, 7)), join(entries(1, 300, 1), entries(301, 310, 7))},
		},
		"start above one": {
			{"first", store(entries(1000, 1010, 3)), entries(1000, 1010, 3)},
		},
		"prefix": {
			{"fill", store(entries(1, 200, 1)), entries(1, 200, 1)},
			{"some", del(1, 50), entries(51, 200, 1)},
			{"again", del(1, 50), entries(51, 200, 1)},
			{"overlapping", del(20, 60), entries(61, 200, 1)},
			{"all but one", del(61, 199), entries(200, 200, 1)},
			{"go on", store(entries(201, 205, 2)), join(entries(200, 200, 1), entries(201, 205, 2))},
		},
		"suffix": {
			{"fill", store(entries(1, 200, 1)), entries(1, 200, 1)},
			{"some", del(150, 200), entries(1, 149, 1)},
			{"rewrite", store(entries(150, 160, 2)), join(entries(1, 149, 1), entries(150, 160, 2))},
			{"beyond", del(155, 1000), join(entries(1, 149, 1), entries(150, 154, 2))},
			{"outside", del(500, 1000), join(entries(1, 149, 1), entries(150, 154, 2))},
			{"back to one", del(2, 154), entries(1, 1, 1)},
		},
		"all, then a gap": {
			{"fill", store(entries(1, 100, 1)), entries(1, 100, 1)},
			{"all", del(1, 100), nil},
			{"above", store(entries(500, 520, 2)), entries(500, 520, 2)},
			{"more than all", del(0, 9999), nil},
			{"below", store(entries(7, 9, 3)), entries(7, 9, 3)},
		},
		"all, then the same again": {
			{"fill", store(entries(5, 10, 1)), entries(5, 10, 1)},
			{"all", del(5, 10), nil},
			{"rewrite", store(entries(5, 6, 2)), entries(5, 6, 2)},
		},
		"large entry": {
			{"large", store([]*raft.Log{{Index: 1, Term: 1, Data: make([]byte, 3800)}}),
				[]*raft.Log{{Index: 1, Term: 1, Data: make([]byte, 3800)}}},
		},
	}
}

func TestStore_LogStore_KeepsContract(t *testing.T) {
	for engine, open := range engines() {
		for name, steps := range contracts() {
			t.Run(engine+"/"+name, func(t *testing.T) {
				s := open(t)
				for _, step := range steps {
					if err := step.do(s); err != nil {
						t.Fatalf("%s: %v", step.name, err)
					}
					if err := compareLog(s, step.want); err != nil {
						t.Fatalf("%s: %v", step.name, err)
					}
				}
			})
		}
	}
}

// The same steps, with the store closed and opened after each.
func TestStore_Open_KeepsContractAcrossReopening(t *testing.T) {
	for name, steps := range contracts() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, step := range steps {
				s := openDir(t, dir, raftlog.Options{SegmentSize: 8192})
				if err := step.do(s); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				checkLog(t, s, step.want)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openDir(t, dir, raftlog.Options{SegmentSize: 8192})
				if err := compareLog(s, step.want); err != nil {
					t.Fatalf("%s, reopened: %v", step.name, err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestStore_IsMonotonic_True(t *testing.T) {
	var s raft.LogStore = openDir(t, t.TempDir(), raftlog.Options{SegmentSize: 8192})
	m, ok := s.(raft.MonotonicLogStore)
	if !ok || !m.IsMonotonic() {
		t.Fatal("the store is not monotonic")
	}
}

func TestStore_StoreLogs_ErrNotContiguous(t *testing.T) {
	s := openDir(t, t.TempDir(), raftlog.Options{SegmentSize: 8192})
	must(t, s.StoreLogs(entries(1, 10, 1)))
	for name, es := range map[string][]*raft.Log{
		"again":        entries(10, 11, 1),
		"below":        entries(3, 4, 1),
		"gap inside":   join(entries(11, 12, 1), entries(14, 14, 1)),
		"falling":      {entry(11, 1), entry(10, 1)},
		"index zero":   {{Index: 0, Term: 1}},
		"twice inside": {entry(11, 1), entry(11, 1)},
	} {
		if err := s.StoreLogs(es); err == nil {
			t.Errorf("%s: no error", name)
		}
		checkLog(t, s, entries(1, 10, 1))
	}
	must(t, s.StoreLogs(entries(11, 20, 1)))
	checkLog(t, s, entries(1, 20, 1))
}

// A gap on a log that is not empty comes after a power cut that left the log behind the newest
// snapshot: the next entry is sent for the snapshot's index plus one.
func TestStore_StoreLogs_StartsAnewBehindGap(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir, raftlog.Options{SegmentSize: 8192})
	must(t, s.StoreLogs(entries(1, 10, 1)))
	must(t, s.StoreLogs(entries(15, 20, 2)))
	checkLog(t, s, entries(15, 20, 2))
	must(t, s.Close())
	checkLog(t, openDir(t, dir, raftlog.Options{SegmentSize: 8192}), entries(15, 20, 2))
}

func TestStore_DeleteRange_ErrMiddle(t *testing.T) {
	s := openDir(t, t.TempDir(), raftlog.Options{SegmentSize: 8192})
	must(t, s.StoreLogs(entries(1, 10, 1)))
	if err := s.DeleteRange(4, 6); err == nil {
		t.Fatal("deleting from the middle: no error")
	}
	checkLog(t, s, entries(1, 10, 1))
}

func TestStore_StoreLogs_ErrEntryTooLarge(t *testing.T) {
	s := openDir(t, t.TempDir(), raftlog.Options{SegmentSize: 8192})
	must(t, s.StoreLogs(entries(1, 10, 1)))
	big := &raft.Log{Index: 12, Term: 1, Data: make([]byte, 8192)}
	if err := s.StoreLogs([]*raft.Log{entry(11, 1), big}); !errors.Is(err, raftlog.ErrEntryTooLarge) {
		t.Fatalf("error %v, want ErrEntryTooLarge", err)
	}
	checkLog(t, s, entries(1, 10, 1))
	must(t, s.StoreLogs(entries(11, 100, 1)))
	checkLog(t, s, entries(1, 100, 1))
}

func TestStore_GetLog_RoundTripsTimes(t *testing.T) {
	s := openDir(t, t.TempDir(), raftlog.Options{SegmentSize: 8192, CacheEntries: -1})
	times := []time.Time{{}, time.Unix(0, 0), time.Unix(-5, 7), time.Unix(1<<40, 999999999)}
	for i, at := range times {
		must(t, s.StoreLog(&raft.Log{Index: uint64(i + 1), Term: 1, AppendedAt: at}))
		var got raft.Log
		must(t, s.GetLog(uint64(i+1), &got))
		if !got.AppendedAt.Equal(at) || got.AppendedAt.IsZero() != at.IsZero() {
			t.Errorf("time %v came back as %v", at, got.AppendedAt)
		}
	}
}

func TestStore_Close_RefusesFurtherCalls(t *testing.T) {
	s := openDir(t, t.TempDir(), raftlog.Options{SegmentSize: 8192})
	must(t, s.StoreLogs(entries(1, 10, 1)))
	must(t, s.Close())
	for name, err := range map[string]error{
		"StoreLogs":   s.StoreLogs(entries(11, 11, 1)),
		"DeleteRange": s.DeleteRange(1, 2),
		"GetLog":      s.GetLog(1, new(raft.Log)),
		"Close":       s.Close(),
	} {
		if !errors.Is(err, raftlog.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
	must(t, s.WaitDurable(10))
}

func TestOpen_ErrLocked(t *testing.T) {
	dir := t.TempDir()
	openDir(t, dir, raftlog.Options{SegmentSize: 8192})
	if s, err := raftlog.Open(dir, raftlog.Options{}); err == nil {
		_ = s.Close()
		t.Fatal("two stores on one directory")
	}
}

func TestOpen_ErrMustExist(t *testing.T) {
	dir := t.TempDir()
	var corrupt *raftlog.CorruptError
	_, err := raftlog.Open(dir, raftlog.Options{MustExist: true})
	if !errors.As(err, &corrupt) {
		t.Fatalf("error %v, want a *CorruptError", err)
	}
	s := openDir(t, dir, raftlog.Options{SegmentSize: 8192})
	must(t, s.Close())
	openDir(t, dir, raftlog.Options{MustExist: true})
}

func TestOpen_ErrSegmentSize(t *testing.T) {
	for _, size := range []int64{-1, 1, 2 << 30} {
		if _, err := raftlog.Open(t.TempDir(), raftlog.Options{SegmentSize: size}); err == nil {
			t.Errorf("segment size %d: no error", size)
		}
	}
}

// NewestWithin counts whole entries from the end, across segments.
func TestStore_NewestWithin(t *testing.T) {
	s := openDir(t, t.TempDir(), raftlog.Options{SegmentSize: 8192})
	if n := s.NewestWithin(1 << 20); n != 0 {
		t.Errorf("%d entries in an empty log", n)
	}
	must(t, s.StoreLogs(entries(1, 1000, 1)))
	if n := s.NewestWithin(1 << 30); n != 1000 {
		t.Errorf("%d entries in the whole log, want 1000", n)
	}
	if n := s.NewestWithin(0); n != 0 {
		t.Errorf("%d entries in 0 bytes", n)
	}
	all := s.Stats().Bytes
	last := uint64(0)
	for bytes := int64(0); bytes <= all; bytes += 1000 {
		n := s.NewestWithin(bytes)
		if n < last || n*64 > uint64(bytes) {
			t.Errorf("%d entries in %d bytes, after %d", n, bytes, last)
		}
		last = n
	}
	if last < 900 {
		t.Errorf("%d entries in all segments", last)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
