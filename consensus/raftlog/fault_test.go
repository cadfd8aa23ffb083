package raftlog_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// makeFS makes an empty file system with faults.
type makeFS func(seed uint64, pageSize int) *faultfs.FS

// eachWay runs a test with a log that is written through the page cache, and past it.
func eachWay(t *testing.T, test func(*testing.T, makeFS)) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("direct=%v", direct), func(t *testing.T) {
			test(t, func(seed uint64, pageSize int) *faultfs.FS {
				f := faultfs.New(seed, pageSize)
				f.SetDirect(direct)
				return f
			})
		})
	}
}

var errDisk = errors.New("input/output error")

func always([]*raft.Log) bool { return true }

// failSyncs is a fault that fails the syncs of segments while on is true.
type failSyncs struct {
	mu    sync.Mutex
	on    bool
	calls int
}

func (s *failSyncs) fault(op faultfs.Op, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op != faultfs.OpSync || !s.on || !strings.HasSuffix(name, ".seg") {
		return nil
	}
	s.calls++
	return errDisk
}

func (s *failSyncs) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

func TestStore_FailedSync_IsFinal(t *testing.T) { eachWay(t, testStoreFailedSyncIsFinal) }

func testStoreFailedSyncIsFinal(t *testing.T, newFS makeFS) {
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprintf("async=%v", async), func(t *testing.T) {
			f := newFS(1, 512)
			var disk failSyncs
			f.SetFault(disk.fault)
			fatal := make(chan error, 10)
			s := openFault(t, f, raftlog.Options{OnFatal: func(err error) { fatal <- err }})
			must(t, s.StoreLogs(entries(1, 10, 1)))
			s.Settle()
			if async {
				s.SetAsync(always)
			}
			disk.set(true)
			err := s.StoreLogs(entries(11, 20, 1))
			if async {
				must(t, err)
				err = s.WaitDurable(11)
			}
			if !errors.Is(err, errDisk) {
				t.Fatalf("error %v, want the disk's", err)
			}
			if err := <-fatal; !errors.Is(err, errDisk) {
				t.Fatalf("OnFatal(%v), want the disk's error", err)
			}
			disk.set(false) // the disk seems well again; that must not be believed
			for name, err := range map[string]error{
				"WaitDurable": s.WaitDurable(20),
				"StoreLogs":   s.StoreLogs(entries(21, 21, 1)),
				"prefix":      s.DeleteRange(1, 2),
				"suffix":      s.DeleteRange(15, 20),
				"Close":       s.Close(),
			} {
				if !errors.Is(err, errDisk) && name != "Close" || err == nil {
					t.Errorf("%s: %v, want the disk's error", name, err)
				}
			}
			must(t, s.WaitDurable(10)) // was durable before
			if s.Stalled() == 0 {
				t.Error("nothing is stalled though records will stay volatile")
			}
			if len(fatal) != 0 || disk.calls != 1 {
				t.Errorf("%d further calls of OnFatal, %d failed syncs, want 0 and 1",
					len(fatal), disk.calls)
			}
			f.PowerOn()
			got, err := outcome(f)
			if err != nil || len(got) < 10 || !isPrefix(got, entries(1, 20, 1)) {
				t.Fatalf("after the restart: %d entries, %v", len(got), err)
			}
		})
	}
}

// A kernel that failed a sync may keep the pages as clean, so that they are read back though the
// disk never got them. A restart without a reboot must write them again before it trusts them.
func TestOpen_AfterFailedSync_WritesTailAgain(t *testing.T) {
	f := faultfs.New(1, 64) // small pages: nothing written later covers the end by accident
	var disk failSyncs
	s := openFault(t, f, raftlog.Options{})
	must(t, s.StoreLogs(entries(1, 10, 1)))
	s.Settle()
	f.SetFault(disk.fault)
	disk.set(true)
	if err := s.StoreLogs(entries(11, 15, 1)); err == nil {
		t.Fatal("the sync did not fail")
	}
	_ = s.Close()
	f.SetFault(nil)
	s = openFault(t, f, raftlog.Options{})
	checkLog(t, s, entries(1, 15, 1))
	f.PowerCut()
	_ = s.Close()
	f.PowerOn()
	checkLog(t, openFault(t, f, raftlog.Options{}), entries(1, 15, 1))
}

func TestStore_FullDisk_RefusesAndRecovers(t *testing.T) {
	eachWay(t, testStoreFullDiskRefusesAndRecovers)
}

func testStoreFullDiskRefusesAndRecovers(t *testing.T, newFS makeFS) {
	f := newFS(1, 512)
	s := openFault(t, f, raftlog.Options{})
	s.Settle()
	f.SetCapacity(6 * segSize)
	var last uint64
	var err error
	for err == nil {
		if err = s.StoreLogs(entries(last+1, last+7, 1)); err == nil {
			last += 7
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v, want ENOSPC", err)
	}
	checkLog(t, s, entries(1, last, 1))
	if err := s.StoreLogs(entries(last+1, last+7, 1)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("again: error %v, want ENOSPC", err)
	}
	f.SetCapacity(f.Used()) // not even room for a manifest
	// A full disk does not keep the log from being shortened, which makes room.
	must(t, s.DeleteRange(1, last-10))
	s.Settle()
	must(t, s.StoreLogs(entries(last+1, last+7, 1)))
	checkLog(t, s, entries(last-9, last+7, 1))
	must(t, s.Close())
	s = openFault(t, f, raftlog.Options{})
	checkLog(t, s, entries(last-9, last+7, 1))
}

// A batch over three segments fails in the third: all of it is undone, and its remains in the files are not read as
// records later.
func TestStore_FailedWrite_TakesBatchBack(t *testing.T) {
	for fails := 1; fails < 12; fails++ {
		for _, bytes := range []int{0, 1, 100, 1000, 4000} {
			f := faultfs.New(uint64(fails), 512)
			s := openFault(t, f, raftlog.Options{SegmentSize: raftlog.MinSegmentSize})
			must(t, s.StoreLogs(entries(1, 3, 1)))
			s.Settle()
			var n atomic.Int64 // maintenance writes too
			f.SetFault(func(op faultfs.Op, name string) error {
				if op != faultfs.OpWrite || !strings.HasSuffix(name, ".seg") {
					return nil
				}
				if n.Add(1) == int64(fails) {
					return &faultfs.ShortWrite{Bytes: bytes, Err: syscall.ENOSPC}
				}
				return nil
			})
			err := s.StoreLogs(entries(4, 30, 1))
			f.SetFault(nil)
			want := entries(1, 30, 1)
			if err != nil {
				want = entries(1, 3, 1)
				checkLog(t, s, want)
				must(t, s.StoreLog(entry(4, 1)))
				want = entries(1, 4, 1)
			}
			checkLog(t, s, want)
			f.PowerCut()
			_ = s.Close()
			f.PowerOn()
			s = openFault(t, f, raftlog.Options{SegmentSize: raftlog.MinSegmentSize})
			if err := compareLog(s, want); err != nil {
				t.Fatalf("write %d cut at %d: %v", fails, bytes, err)
			}
			must(t, s.Close())
		}
	}
}

// A disk whose syncs do nothing loses acknowledged entries, which no store can prevent. The store must return nothing
// wrong, and must refuse if it can know that something is missing.
func TestOpen_LyingDisk_NeverReturnsWrongData(t *testing.T) {
	eachWay(t, testOpenLyingDiskNeverReturnsWrongData)
}

func testOpenLyingDiskNeverReturnsWrongData(t *testing.T, newFS makeFS) {
	refused, shorter := 0, 0
	for seed := range uint64(60) {
		f := newFS(seed, 512)
		s := openFault(t, f, raftlog.Options{})
		must(t, s.StoreLogs(entries(1, 20, 1)))
		f.SetLying(true)
		for i := uint64(21); i < 60; i++ {
			must(t, s.StoreLog(entry(i, 1)))
		}
		s.Settle()
		f.PowerCut()
		_ = s.Close()
		f.PowerOn()
		f.SetLying(false)
		got, err := outcome(f)
		switch {
		case err != nil:
			checkRefusal(t, fmt.Sprintf("seed %d", seed), err)
			refused++
		case len(got) < 20 || !isPrefix(got, entries(1, 59, 1)):
			t.Fatalf("seed %d: read %d entries, not a prefix of what was written", seed, len(got))
		default:
			shorter++
		}
	}
	t.Logf("%d refused, %d unnoticed", refused, shorter)
	if refused == 0 {
		t.Error("never noticed")
	}
}

// Goal: with a disk that takes 10 ms a sync, asynchronous appends return at once, readers see them,
// Stalled and WaitDurable report the state of the disk, and many appends share a sync.
func TestStore_SlowSync_OverlapsAppends(t *testing.T) { eachWay(t, testStoreSlowSyncOverlapsAppends) }

func testStoreSlowSyncOverlapsAppends(t *testing.T, newFS makeFS) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 10 * time.Millisecond
		f := newFS(1, 512)
		s, err := tryOpen(f, raftlog.Options{SegmentSize: 1 << 16, CacheEntries: 8})
		must(t, err)
		s.SetAsync(always)
		s.Settle()
		f.SetFault(func(op faultfs.Op, name string) error {
			if op == faultfs.OpSync && strings.HasSuffix(name, ".seg") {
				clock.Sleep(delay)
			}
			return nil
		})
		syncs := s.Stats().Syncs
		start := time.Now()
		for i := uint64(1); i <= 100; i++ {
			must(t, s.StoreLog(entry(i, 1)))
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("100 asynchronous appends took %v", d)
		}
		checkLog(t, s, entries(1, 100, 1))
		clock.Sleep(delay / 2)
		if st := s.Stalled(); st != delay/2 {
			t.Errorf("Stalled %v, want %v", st, delay/2)
		}
		must(t, s.WaitDurable(100))
		if d := time.Since(start); d > 2*delay {
			t.Errorf("100 entries durable after %v, want %v at most", d, 2*delay)
		}
		if n := s.Stats().Syncs - syncs; n > 2 {
			t.Errorf("%d syncs, want 2", n)
		}
		if st := s.Stalled(); st != 0 {
			t.Errorf("Stalled %v with nothing volatile", st)
		}
		must(t, s.Close())
	})
}

// Nothing that waits for a hanging disk is released, and nothing else waits.
func TestStore_HangingSync_BlocksOnlyWaiters(t *testing.T) {
	eachWay(t, testStoreHangingSyncBlocksOnlyWaiters)
}

func testStoreHangingSyncBlocksOnlyWaiters(t *testing.T, newFS makeFS) {
	synctest.Test(t, func(t *testing.T) {
		f := newFS(1, 512)
		s, err := tryOpen(f, raftlog.Options{SegmentSize: 1 << 16})
		must(t, err)
		s.SetAsync(always)
		s.Settle()
		heal := make(chan struct{})
		f.SetFault(func(op faultfs.Op, name string) error {
			if op == faultfs.OpSync && strings.HasSuffix(name, ".seg") {
				<-heal
			}
			return nil
		})
		done := make(chan string, 10)
		must(t, s.StoreLogs(entries(1, 5, 1)))
		call := func(name string, f func() error) {
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			done <- name
		}
		go call("wait", func() error { return s.WaitDurable(3) })
		go call("suffix", func() error { return s.DeleteRange(4, 5) })
		synctest.Wait()
		go call("append behind suffix", func() error { return s.StoreLogs(entries(4, 4, 2)) })
		synctest.Wait()
		if len(done) != 0 {
			t.Fatalf("%q ended while the disk hangs", <-done)
		}
		must(t, s.GetLog(2, new(raft.Log)))
		clock.Sleep(time.Minute)
		if st := s.Stalled(); st != time.Minute {
			t.Errorf("Stalled %v, want 1m", st)
		}
		close(heal)
		synctest.Wait()
		if len(done) != 3 {
			t.Fatalf("%d calls ended after the disk came back, want 3", len(done))
		}
		must(t, s.WaitDurable(1000))
		must(t, s.Close())
		checkRest, err := tryOpen(f, raftlog.Options{})
		must(t, err)
		checkLog(t, checkRest, join(entries(1, 3, 1), entries(4, 4, 2)))
		must(t, checkRest.Close())
	})
}

func TestStore_WaitDurable_UnknownIndexes(t *testing.T) {
	eachWay(t, testStoreWaitDurableUnknownIndexes)
}

func testStoreWaitDurableUnknownIndexes(t *testing.T, newFS makeFS) {
	f := newFS(1, 512)
	s := openFault(t, f, raftlog.Options{})
	must(t, s.WaitDurable(1<<60)) // empty log: nothing is volatile
	must(t, s.StoreLogs(entries(100, 110, 1)))
	must(t, s.WaitDurable(5)) // exists only in a snapshot
	must(t, s.DeleteRange(0, 200))
	must(t, s.WaitDurable(105))
}

// Old segments and their entries in the manifest go, and the log still opens, with readers and an appender at work all
// the time.
func TestStore_DeleteRange_DropsSegmentsUnderLoad(t *testing.T) {
	tier.Seconds(t)
	eachWay(t, testStoreDeleteRangeDropsSegmentsUnderLoad)
}

func testStoreDeleteRangeDropsSegmentsUnderLoad(t *testing.T, newFS makeFS) {
	f := newFS(1, 512)
	s := openFault(t, f, raftlog.Options{CacheEntries: 16})
	const n = 3000
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				first, _ := s.FirstIndex()
				last, _ := s.LastIndex()
				for _, i := range []uint64{first, (first + last) / 2, last} {
					var got raft.Log
					err := s.GetLog(i, &got)
					if err == nil && !sameEntry(&got, entry(i, 1)) {
						t.Errorf("GetLog(%d) returned wrong data", i)
					}
					if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
						t.Errorf("GetLog(%d): %v", i, err)
					}
				}
			}
		})
	}
	wg.Go(func() {
		for deleted := uint64(0); deleted < n-100; {
			last, _ := s.LastIndex()
			if last < deleted+100 {
				if err := s.WaitDurable(last); err != nil {
					t.Error(err)
					return
				}
				continue
			}
			deleted += 50
			if err := s.DeleteRange(deleted-49, deleted); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := uint64(1); i <= n; i++ {
		s.SetAsync(func([]*raft.Log) bool { return i%3 != 0 })
		must(t, s.StoreLog(entry(i, 1)))
	}
	wgDone := make(chan struct{})
	go func() { wg.Wait(); close(wgDone) }()
	must(t, s.DeleteRange(0, n-100))
	close(stop)
	<-wgDone
	s.Settle()
	if st := s.Stats(); st.Segments > 8 {
		t.Errorf("%d segments for 100 entries: none were dropped", st.Segments)
	}
	must(t, s.Close())
	checkLog(t, openFault(t, f, raftlog.Options{}), entries(n-99, n, 1))
}

// A deletion that is visible but not durable must not cost a file: its record may be lost in a
// power cut, and the log would then start with entries whose segments are gone.
func TestStore_DeleteRange_KeepsFilesUntilDurable(t *testing.T) {
	eachWay(t, testStoreDeleteRangeKeepsFilesUntilDurable)
}

func testStoreDeleteRangeKeepsFilesUntilDurable(t *testing.T, newFS makeFS) {
	synctest.Test(t, func(t *testing.T) {
		f := newFS(1, 512)
		s, err := tryOpen(f, raftlog.Options{})
		must(t, err)
		must(t, s.StoreLogs(entries(1, 300, 1)))
		s.Settle()
		heal := make(chan struct{})
		f.SetFault(func(op faultfs.Op, name string) error {
			if op == faultfs.OpSync && strings.HasSuffix(name, ".seg") {
				<-heal
			}
			return nil
		})
		before := s.Stats().Segments
		done := make(chan error, 1)
		go func() { done <- s.DeleteRange(1, 290) }()
		synctest.Wait()
		if first, _ := s.FirstIndex(); first != 291 {
			t.Fatalf("first index %d while the deletion syncs, want 291", first)
		}
		s.RequestDrop() // left from an earlier deletion
		synctest.Wait()
		if n := s.Stats().Segments; n != before || before < 4 {
			t.Errorf("%d segments before the deletion is durable, want %d", n, before)
		}
		close(heal)
		must(t, <-done)
		s.Settle()
		if n := s.Stats().Segments; n >= before {
			t.Errorf("%d segments after the deletion, %d before", n, before)
		}
		must(t, s.Close())
	})
}

func TestStore_Stats_CountsAndLatencies(t *testing.T) { eachWay(t, testStoreStatsCountsAndLatencies) }

func testStoreStatsCountsAndLatencies(t *testing.T, newFS makeFS) {
	f := newFS(1, 512)
	s := openFault(t, f, raftlog.Options{CacheEntries: 10})
	must(t, s.StoreLogs(entries(1, 50, 1)))
	s.Settle()
	must(t, s.GetLog(50, new(raft.Log)))
	must(t, s.GetLog(1, new(raft.Log)))
	st := s.Stats()
	if st.FirstIndex != 1 || st.LastIndex != 50 || st.Volatile != 0 || st.CacheEntries != 10 ||
		st.CacheHits != 1 || st.CacheMisses != 1 || st.Syncs < 2 || st.Prepared != 1 ||
		st.Bytes != int64(st.Segments+st.Prepared)*segSize {
		t.Errorf("unexpected figures: %+v", st)
	}
}
