package load

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Idle keeps Connections sessions alive that have nothing to say, each with a
// ping every third of its timeout, as ZooKeeper's clients do, the pings evenly
// spread. What it measures is what that costs the servers: Servers of the result.
// Sessions that were lost on the way count as dropped.
func Idle(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	conns, err := connectAll(ctx, &cfg, cfg.Connections)
	if err != nil {
		closeAll(conns)
		return nil, err
	}
	pings := 0
	res, err := Measure(ctx, &cfg, func(rec *Recorder, begin time.Time) []func() error {
		return []func() error{func() error {
			pings = ping(ctx, conns, begin, rec, cfg.SessionTimeout/pingsATimeout)
			return nil
		}}
	})
	res.Kind, res.Config.Mix, res.Ops = "idle", nil, nil
	res.Total = OpResult{Name: "ping", PerSecond: float64(pings) / res.Elapsed.Seconds()}
	// The reply comes after those to all pings, so it shows that all came.
	lost := closeAll(conns)
	res.Dropped = len(lost)
	if len(lost) == len(conns) {
		err = errors.Join(err, fmt.Errorf("no session has lasted: %w", lost[0]))
	}
	return res, err
}

// ping sends pings in turn, so that each connection has one in every interval,
// until the end of the run. It returns how many were sent in the measured time.
func ping(
	ctx context.Context, conns []*conn, begin time.Time, rec *Recorder, interval time.Duration,
) int {
	sent := 0
	for k := 0; ; k++ {
		at := begin.Add(interval / time.Duration(len(conns)) * time.Duration(k))
		if !at.Before(rec.Until()) {
			at = rec.Until()
		}
		select {
		case <-time.After(time.Until(at)):
		case <-ctx.Done():
			return sent
		}
		if at.Equal(rec.Until()) {
			return sent
		}
		c := conns[k%len(conns)]
		// A connection that has ended shows when its session is closed.
		c.nc.SetWriteDeadline(time.Now().Add(dialTimeout))
		if _, err := c.nc.Write(c.appendPing(nil)); err == nil && !at.Before(rec.from) {
			sent++
		}
	}
}
