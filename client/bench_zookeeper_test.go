//go:build zookeeper

package client_test

import (
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// BenchmarkZooKeeper_Get measures gets of 100 bytes over one connection to a real
// server, with different numbers in flight.
func BenchmarkZooKeeper_Get(b *testing.B) {
	e := zookeeper.Start(b, 1)
	c := connect(b, e.ConnectString())
	if _, _, err := c.Create(b.Context(), "/bench", make([]byte, 100), client.Persistent); err != nil {
		b.Fatal(err)
	}
	for _, inFlight := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			benchmarkGets(b, c, "/bench", inFlight)
		})
	}
}

// benchmarkGets keeps inFlight asynchronous gets on their way.
func benchmarkGets(b *testing.B, c *client.Client, path string, inFlight int) {
	ctx := b.Context()
	window := make([]*client.Pending[client.GetReply], inFlight)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		slot := i % inFlight
		if p := window[slot]; p != nil {
			if _, err := p.Wait(ctx); err != nil {
				b.Fatal(err)
			}
		}
		window[slot] = c.Async().Get(ctx, path)
	}
	for _, p := range window {
		if p != nil {
			if _, err := p.Wait(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "gets/s")
}
