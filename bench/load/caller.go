package load

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Call is one request to a service that does not speak ZooKeeper's protocol.
type Call struct {
	Op   Op
	Key  int    // 0 to Config.Keys-1; of all but Create
	New  string // a name that nobody has used; of Create
	Data []byte
}

// Caller is one connection to such a service. Do waits for the answer; InFlight
// goroutines call it at once.
type Caller interface {
	Do(ctx context.Context, c Call) error
	Close() error
}

// RunCallers puts a closed loop on any service, with the mix, the keys and the
// clock of Run: Connections callers, each used by InFlight goroutines. dial is
// called for each connection. Hosts and Prefix are the callers' business, and
// Delete and Multi are not possible.
func RunCallers(
	ctx context.Context, cfg Config, dial func(conn int) (Caller, error),
) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Rate != 0 || cfg.Mix.has(Delete) || cfg.Mix.has(Multi) {
		return nil, errors.New("callers have no rate, delete or multi")
	}
	var callers []Caller
	defer func() {
		for _, c := range callers {
			_ = c.Close() // nothing depends on it any more
		}
	}()
	for i := range cfg.Connections {
		c, err := dial(i)
		if err != nil {
			return nil, fmt.Errorf("connection %d of %d: %w", i+1, cfg.Connections, err)
		}
		callers = append(callers, c)
	}
	data := value(cfg.Seed, cfg.ValueSize)
	return measure(ctx, &cfg, func(rec *Recorder, _ time.Time) (tasks []func() error) {
		for i, c := range callers {
			for k := range cfg.InFlight {
				id := i*cfg.InFlight + k
				d := newDrawer(cfg.Seed, id, cfg.Keys, cfg.Zipf)
				tasks = append(tasks, func() error { return calls(ctx, &cfg, rec, id, d, c, data) })
			}
		}
		return tasks
	})
}

// calls is one goroutine of RunCallers.
func calls(
	ctx context.Context, cfg *Config, rec *Recorder, id int, d *drawer, c Caller, data []byte,
) error {
	ctx, cancel := context.WithDeadline(ctx, rec.Until().Add(drainTimeout))
	defer cancel()
	for n := 0; ; n++ {
		call := Call{Op: cfg.Mix.draw(d.random), Data: data}
		if call.Op == Create {
			call.New = fmt.Sprintf("c%d-%d", id, n)
		} else {
			call.Key = d.draw()
		}
		start := time.Now()
		if !start.Before(rec.Until()) {
			return nil
		}
		if err := c.Do(ctx, call); err != nil {
			if ctx.Err() != nil {
				rec.Unanswered(start)
				return err
			}
			rec.Error(call.Op, err)
			continue
		}
		rec.Answer(id, call.Op, start, time.Now())
	}
}
