//go:build interop

package learner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/migration/replica"
)

// BenchmarkReal_Snapshot takes over a million znodes of 100 bytes from ZooKeeper 3.9, with its server beside it. It
// reports the time from the first packet to Handler.Snapshot, and the heap then, with and without garbage.
func BenchmarkReal_Snapshot(b *testing.B) {
	const znodes = 1_000_000
	e := zookeeper.Run(b, zookeeper.Options{Version: zookeeper.V39, Servers: 1,
		Config: []string{"standaloneEnabled=false", "initLimit=1000"},
		Flags:  []string{"-Xmx2g", "-Dzookeeper.forceSync=no"}})
	c, err := client.Connect(b.Context(), e.ConnectString())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	const wide = 1000
	last := make([]*client.Pending[client.CreateReply], 0, wide)
	for i := range znodes {
		path := fmt.Sprintf("/%d", i/wide)
		if i%wide > 0 {
			path += fmt.Sprintf("/%d", i%wide)
		}
		last = append(last, c.Async().Create(b.Context(), path, make([]byte, 100), client.Persistent))
		if len(last) == wide {
			for _, p := range last {
				if _, err := p.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			last = last[:0]
		}
	}
	taken := errors.New("taken")
	var used, live runtime.MemStats
	l := New(Config{Servers: []string{e.Servers[0].Quorum}, ID: 200})
	before := processorSeconds(b)
	for b.Loop() {
		h := &snapshotOnly{taken: func(r *replica.Replica) error {
			b.StopTimer()
			runtime.ReadMemStats(&used)
			runtime.GC()
			runtime.ReadMemStats(&live)
			if n := r.Tree.Snapshot().Len(); n < znodes {
				b.Errorf("%d znodes, want %d", n, znodes)
			}
			b.StartTimer()
			return taken
		}}
		if err := l.Follow(context.Background(), Position{}, h); !errors.Is(err, taken) {
			b.Fatalf("Follow = %v, want a snapshot", err)
		}
	}
	b.ReportMetric((processorSeconds(b)-before)/float64(b.N), "CPU-s/op")
	b.ReportMetric(float64(used.HeapSys-used.HeapReleased)/1e6, "MB-heap")
	b.ReportMetric(float64(live.HeapAlloc)/1e6, "MB-live")
}

// processorSeconds is what this process has used.
func processorSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// snapshotOnly is a Handler for one call.
type snapshotOnly struct {
	counter
	taken func(*replica.Replica) error
}

func (s *snapshotOnly) Snapshot(r *replica.Replica) error { return s.taken(r) }
