package znode

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// million builds a tree of n znodes with 100 bytes of data each, 1,000 to a
// parent, the shape of issue-sized benchmarks.
func million(tb testing.TB, n int) (*Tree, *Txn) {
	tb.Helper()
	t, x := NewTree(), &Txn{}
	data := make([]byte, 100)
	for i := range n {
		x.Reset()
		x.Zxid++
		parent := fmt.Sprintf("/app%04d", i/1000)
		if i%1000 == 0 {
			if _, _, code := t.Create(x, &CreateRequest{Path: parent, ACL: OpenACL}); code != OK {
				tb.Fatalf("create of %s: %v, want no error", parent, code)
			}
		}
		path := fmt.Sprintf("%s/node%06d", parent, i)
		if _, _, code := t.Create(x, &CreateRequest{Path: path, Data: data, ACL: OpenACL}); code != OK {
			tb.Fatalf("create of %s: %v, want no error", path, code)
		}
	}
	return t, x
}

// BenchmarkTree_Memory reports the live heap of a million znodes with 100
// bytes of data each.
func BenchmarkTree_Memory(b *testing.B) {
	const n = 1_000_000
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		t, _ := million(b, n)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(t)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/znode")
}

// BenchmarkTree_SetData changes one of a million znodes at a time, alone and
// while a snapshot is held.
func BenchmarkTree_SetData(b *testing.B) {
	const n = 1_000_000
	t, x := million(b, n)
	data := make([]byte, 100)
	paths := make([]string, 1<<16)
	for i := range paths {
		k := i * 15
		paths[i] = fmt.Sprintf("/app%04d/node%06d", k/1000, k)
	}
	run := func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			x.Reset()
			x.Zxid++
			if _, code := t.SetData(x, paths[i%len(paths)], data, AnyVersion); code != OK {
				b.Fatalf("set: %v, want no error", code)
			}
		}
	}
	b.Run("quiet", run)
	s := t.Snapshot()
	b.Run("snapshot", run)
	s.Release()
}

// BenchmarkTree_Snapshot reports how long the writer is held up when a
// snapshot of a million znodes begins, and the longest single write during it.
func BenchmarkTree_Snapshot(b *testing.B) {
	const n = 1_000_000
	t, x := million(b, n)
	data := make([]byte, 100)
	var begin, worst time.Duration
	for b.Loop() {
		start := time.Now()
		s := t.Snapshot()
		begin = max(begin, time.Since(start))
		for i := 0; i < n; i += 101 {
			x.Reset()
			x.Zxid++
			start := time.Now()
			t.SetData(x, fmt.Sprintf("/app%04d/node%06d", i/1000, i), data, AnyVersion)
			worst = max(worst, time.Since(start))
		}
		s.Release()
	}
	b.ReportMetric(float64(begin.Microseconds()), "begin-us")
	b.ReportMetric(float64(worst.Microseconds()), "worst-write-us")
}
