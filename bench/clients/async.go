package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/client"
)

// waiting is what both kinds of pending operations have in common.
type waiting interface{ Done() <-chan struct{} }

// pending is one asynchronous call.
type pending struct {
	p     waiting
	err   func() error
	start time.Time
}

// runAsync keeps depth asynchronous calls under way from one goroutine.
func runAsync(ctx context.Context, o *ours, cfg *load.Config, data []byte) (*load.Result, error) {
	random := rand.New(rand.NewPCG(cfg.Seed, 0))
	op := cfg.Mix[0].Op
	send := func(now time.Time) pending {
		at := o.paths[random.IntN(keys)]
		if op == load.Get {
			p := o.c.Async().Get(ctx, at)
			return pending{p, func() error { _, err := p.Wait(ctx); return err }, now}
		}
		p := o.c.Async().Set(ctx, at, data, client.AnyVersion)
		return pending{p, func() error { _, err := p.Wait(ctx); return err }, now}
	}
	begin := time.Now()
	from := begin.Add(cfg.WarmUp)
	until := from.Add(cfg.Duration)
	window := make([]pending, cfg.InFlight)
	for i := range window {
		window[i] = send(time.Now())
	}
	var latency load.Histogram
	answered, measuring := 0, false
	now := begin
	for n := 0; now.Before(until); n++ {
		if !measuring && !now.Before(from) {
			measuring = true
			cfg.Measured(true)
		}
		w := &window[n%len(window)]
		select {
		case <-w.p.Done(): // it completed together with the one before
		default:
			<-w.p.Done()
			now = time.Now()
		}
		if err := w.err(); err != nil {
			return nil, err
		}
		if measuring && now.Before(until) {
			answered++
			latency.Record(now.Sub(w.start))
		}
		*w = send(now)
	}
	cfg.Measured(false)
	for i := range window {
		<-window[i].p.Done()
	}
	var counts load.Counts
	latency.AddTo(&counts)
	r := &load.Result{Kind: "load", Started: from, Config: *cfg, Elapsed: cfg.Duration}
	r.Total = load.OpResult{Name: op.String(), Latency: counts.Latency(),
		PerSecond: float64(answered) / cfg.Duration.Seconds()}
	return r, nil
}
