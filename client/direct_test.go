package client_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
)

// TestReal_WriteByCallerAndWriter mixes requests that find the connection idle, which
// their callers write, with bursts and with large ones, which the writer writes. Were
// two of them ever written in another order than they were queued, or mixed up, the
// answers would not fit, and a Set would not find the version that the one before has left.
func TestReal_WriteByCallerAndWriter(t *testing.T) {
	const seed = 20
	t.Logf("seed %d", seed)
	servers := startServer(t)
	c := connect(t, servers)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(g)))
			path := fmt.Sprintf("/direct%d", g)
			_, stat, err := c.Create(t.Context(), path, nil, client.Persistent)
			if err != nil {
				t.Error(err)
				return
			}
			version := stat.Version
			for range 60 {
				var burst []*client.Pending[client.Stat]
				for range 1 + random.IntN(4)*random.IntN(4) {
					data := make([]byte, 10<<(10*random.IntN(2)))
					burst = append(burst, c.Async().Set(t.Context(), path, data, version))
					version++
				}
				for _, p := range burst {
					if _, err := p.Wait(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
}
