package zk_test

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func BenchmarkDoor_Get(b *testing.B) {
	benchmark(b, wire.OpGetData, &wire.GetDataRequest{Path: "/bench/znode"})
}

func BenchmarkDoor_Set(b *testing.B) {
	benchmark(b, wire.OpSetData, &wire.SetDataRequest{
		Path: "/bench/znode", Data: make([]byte, 100), Version: znode.AnyVersion,
	})
}

// benchmark measures one connection over loopback with 1 and 64 requests in
// flight. The client's own work and its two system calls are in the figures;
// its allocations are not: it reuses everything.
func benchmark(b *testing.B, op wire.OpCode, body wire.Request) {
	for _, inFlight := range []int{1, 64} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			c := start(b).connect()
			if err := c.c.SetDeadline(noDeadline); err != nil {
				b.Fatal(err)
			}
			c.create("/bench", "")
			c.create("/bench/znode", string(make([]byte, 100)))
			var batch []byte
			for range inFlight {
				batch = wire.AppendRequest(batch, wire.RequestHeader{Xid: 1, Type: op}, body)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for sent := 0; sent < b.N; sent += inFlight {
				c.raw(batch)
				for range inFlight {
					if p := c.next(); len(p) < wire.ReplyHeaderBytes {
						b.Fatal("short reply")
					}
				}
			}
		})
	}
}

// BenchmarkDoor_IdleConnection measures the memory of a connection with a
// session that does nothing, its server.Conn and goroutine included and the
// session's replicated record too.
func BenchmarkDoor_IdleConnection(b *testing.B) {
	k := start(b, func(s *serverConfig, _ *zkConfig) { s.Tick = idleTick; s.Grace = idleTick })
	const n = 2000
	for b.Loop() {
		before := heapAndStacks()
		conns := make([]net.Conn, 0, n)
		for range n {
			c := k.connect()
			conns = append(conns, c.c)
			c.frames = nil
		}
		b.ReportMetric(float64(heapAndStacks()-before)/n, "B/conn+client")
		for _, c := range conns {
			c.Close()
		}
	}
}

func heapAndStacks() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
