package raftlog_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// benchEntrySize is a coalesced small request, the size used in the design's measurements.
const benchEntrySize = 200

func benchAppend(b *testing.B, s raft.LogStore, batch int, wait func(uint64) error) {
	data := make([]byte, benchEntrySize)
	es := make([]*raft.Log, batch)
	next := uint64(1)
	b.SetBytes(int64(batch * benchEntrySize))
	for b.Loop() {
		for i := range es {
			es[i] = &raft.Log{Index: next, Term: 1, Data: data}
			next++
		}
		if err := s.StoreLogs(es); err != nil {
			b.Fatal(err)
		}
	}
	if err := wait(next - 1); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(next-1)/b.Elapsed().Seconds(), "entries/s")
}

func BenchmarkStoreLogs(b *testing.B) {
	nothing := func(uint64) error { return nil }
	for _, batch := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("raftlog/%d", batch), func(b *testing.B) {
			s := openDir(b, b.TempDir(), raftlog.Options{})
			benchAppend(b, s, batch, nothing)
			b.ReportMetric(float64(s.Stats().SyncMax.Microseconds()), "max-sync-us")
		})
		b.Run(fmt.Sprintf("raftlog-async/%d", batch), func(b *testing.B) {
			s := openDir(b, b.TempDir(), raftlog.Options{})
			s.SetAsync(always)
			benchAppend(b, s, batch, s.WaitDurable)
		})
		b.Run(fmt.Sprintf("raft-boltdb/%d", batch), func(b *testing.B) {
			s, err := raftboltdb.NewBoltStore(filepath.Join(b.TempDir(), "bolt"))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			benchAppend(b, s, batch, nothing)
		})
	}
}

func BenchmarkGetLog(b *testing.B) {
	for name, opt := range map[string]raftlog.Options{
		"cached": {SegmentSize: 4 << 20},
		"disk":   {SegmentSize: 4 << 20, CacheEntries: -1},
	} {
		b.Run(name, func(b *testing.B) {
			s := openDir(b, b.TempDir(), opt)
			for i := uint64(1); i <= 1024; i++ {
				e := &raft.Log{Index: i, Term: 1, Data: make([]byte, benchEntrySize)}
				s.SetAsync(always)
				if err := s.StoreLog(e); err != nil {
					b.Fatal(err)
				}
			}
			var out raft.Log
			i := uint64(0)
			for b.Loop() {
				i++
				if err := s.GetLog(i%1024+1, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := openDir(b, dir, raftlog.Options{})
	s.SetAsync(always)
	for i := uint64(1); i <= 200_000; i++ {
		e := &raft.Log{Index: i, Term: 1, Data: make([]byte, benchEntrySize)}
		if err := s.StoreLog(e); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := raftlog.Open(dir, raftlog.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
