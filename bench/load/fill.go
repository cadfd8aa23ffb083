package load

import (
	"context"
	"time"
)

// Fill creates Keys znodes of ValueSize bytes in multis and leaves them, to see
// what a tree of that size costs. Processes of the result are read at the end.
func Fill(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	keys, data := newKeySpace(cfg.Prefix, cfg.Keys), value(cfg.Seed, cfg.ValueSize)
	start, before := time.Now(), readUsage(cfg.PIDs)
	if err := asAdmin(ctx, &cfg, func(c *conn) error { return keys.build(ctx, c, data) }); err != nil {
		return nil, err
	}
	used := readUsage(cfg.PIDs).since(before)
	res := &Result{Kind: "fill", Started: start, Config: cfg, Elapsed: time.Since(start),
		Servers: used.servers, Generator: used.self}
	res.Total = OpResult{Name: "create in multis",
		PerSecond: float64(cfg.Keys) / res.Elapsed.Seconds()}
	return res, nil
}
