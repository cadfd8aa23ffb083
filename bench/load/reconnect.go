package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Reconnected is how long clients needed whose server ended.
type Reconnected struct {
	Host    string        // that ended
	Clients Latency       // from its end until each had its session again
	All     time.Duration // until the last had
	Expired int           // sessions that no server took back
	CPU     time.Duration // of the other servers meanwhile
}

// Reconnect opens Connections sessions at the leader, kills it, and has them come back to the others, half of them to
// each first. kill is KillLeader's. Its clients wait between two tries as those of Failover do.
func Reconnect(ctx context.Context, cfg Config, kill Killer) (*Reconnected, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	leader, err := findLeader(ctx, cfg.Hosts, cfg.TLS)
	if err != nil {
		return nil, err
	}
	others := append(append([]string(nil), cfg.Hosts[leader+1:]...), cfg.Hosts[:leader]...)
	at := cfg
	at.Hosts = cfg.Hosts[leader : leader+1]
	conns, err := connectAll(ctx, &at, cfg.Connections)
	if err != nil {
		closeSockets(conns)
		return nil, err
	}
	before, begin := readUsage(cfg.PIDs), time.Now()
	r := &Reconnected{}
	if r.Host, err = kill(ctx); err != nil {
		closeSockets(conns)
		return nil, err
	}
	var back Histogram
	var mu sync.Mutex // protects back and r.Expired
	var all sync.WaitGroup
	for i, c := range conns {
		h := &home{hosts: others, at: i % len(others), conn: c, timeout: cfg.SessionTimeout, tls: cfg.TLS}
		all.Go(func() {
			_, _ = h.conn.read() // which ends
			h.leave()
			if h.comeBack(ctx, func() { mu.Lock(); r.Expired++; mu.Unlock() }) {
				mu.Lock()
				back.Record(time.Since(begin))
				mu.Unlock()
			}
			conns[i] = h.conn
		})
	}
	all.Wait()
	r.All = time.Since(begin)
	for _, p := range readUsage(cfg.PIDs).since(before).servers {
		if !p.Ended {
			r.CPU += p.CPU
		}
	}
	var counts Counts
	back.AddTo(&counts)
	r.Clients = counts.Latency()
	if ctx.Err() != nil {
		return r, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	if lost := closeAll(conns); len(lost) > 0 {
		return r, fmt.Errorf("%d sessions were lost again, one by: %w", len(lost), lost[0])
	}
	return r, nil
}
