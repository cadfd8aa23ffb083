package transport

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// Servers without a leader kept one another from electing one forever. Each had promised itself to another that had no
// majority. That one, a candidate of raft's own timer, asked for pre-votes again before the promise ended, which
// prolonged it. Method: five and seven servers start with such promises in a circle; some are down, and refuse
// connections or, as a host without power, never answer.
func TestRegression_PromisesInACircle_EndByThemselves(t *testing.T) {
	for _, x := range []struct {
		n, up  int
		silent bool // those that are down
	}{
		{n: 5, up: 5}, {n: 5, up: 4}, {n: 5, up: 3}, {n: 7, up: 4},
		{n: 5, up: 4, silent: true}, {n: 7, up: 4, silent: true},
	} {
		t.Run(fmt.Sprintf("%+v", x), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, clusterOptions{
					n: x.n,
					config: func(_ uint64, c *raft.Config) { // asks at least every 240 ms, within 250 ms
						c.HeartbeatTimeout, c.ElectionTimeout = 120*time.Millisecond, 120*time.Millisecond
						c.LeaderLeaseTimeout = 100 * time.Millisecond
					},
					wire: func(s *server) {
						d, next := s.t.failover, RaftID(s.id%uint64(x.up)+1)
						d.mu.Lock()
						defer d.mu.Unlock()
						d.promise.give(next, d.promiseTimeLocked())
					},
				})
				for _, s := range c.servers[x.up:] {
					s.end()
					if x.silent {
						c.f.Listen(s.addr)
					}
				}
				c.apply(c.leader(), "x")
			})
		})
	}
}
