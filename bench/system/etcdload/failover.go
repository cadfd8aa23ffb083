package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// failover is a load of clients that know all servers. Its outage is the longest time of the whole measured time in
// which no client had an answer.
func failover(ctx context.Context, cfg load.Config, keys []string) (*load.Result, error) {
	var o outage
	told := cfg.Measured
	cfg.Measured = func(begun bool) {
		if o.measure(begun); told != nil {
			told(begun)
		}
	}
	res, err := load.RunCallers(ctx, cfg, func(conn int) (load.Caller, error) {
		// The client begins with the first endpoint.
		n := conn % len(cfg.Hosts)
		c, err := dial(slices.Concat(cfg.Hosts[n:], cfg.Hosts[:n])...)
		return &noted{caller{client: c, keys: keys, prefix: cfg.Prefix + "/new/"}, &o, time.Time{}, 0}, err
	})
	if res != nil {
		res.Kind, res.Failover = "failover", o.result()
	}
	return res, err
}

// outage finds the longest times without an answer, of all clients together and of each.
type outage struct {
	mu      sync.Mutex // protects the fields below, and those of its clients
	on      bool
	begin   time.Time // of the measured time
	last    time.Time
	longest time.Duration
	at      time.Duration // its begin
	clients []*noted
}

func (o *outage) measure(begun bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if o.on = begun; begun {
		o.begin, o.last = now, now
		return
	}
	for _, c := range o.clients {
		c.longest = max(c.longest, now.Sub(c.last)) // it may still wait
	}
}

func (o *outage) answered(c *noted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on {
		return
	}
	now := time.Now()
	if gap := now.Sub(o.last); gap > o.longest {
		o.longest, o.at = gap, o.last.Sub(o.begin)
	}
	o.last = now
	if c.last.IsZero() {
		o.clients, c.last = append(o.clients, c), o.begin
	}
	c.longest, c.last = max(c.longest, now.Sub(c.last)), now
}

func (o *outage) result() *load.Outage {
	o.mu.Lock()
	defer o.mu.Unlock()
	var each load.Histogram
	for _, c := range o.clients {
		each.Record(c.longest)
	}
	var counts load.Counts
	each.AddTo(&counts)
	return &load.Outage{Longest: load.Micros(o.longest), At: o.at, Clients: counts.Latency()}
}

// noted is a caller whose answers an outage hears of.
type noted struct {
	caller
	outage  *outage
	last    time.Time
	longest time.Duration
}

// Do sends one request.
func (c *noted) Do(ctx context.Context, call load.Call) error {
	err := c.caller.Do(ctx, call)
	if err == nil {
		c.outage.answered(c)
	}
	return err
}
