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
	New  string // an unused name; of Create. Of others, if not "": the name of a Create, in place of Key
	Data []byte
}

// Caller is one connection to such a service. Do waits for the answer; InFlight
// goroutines call it at once.
type Caller interface {
	Do(ctx context.Context, c Call) error
	Close() error
}

// RunCallers puts a load on any service, with the mix, the keys and the clock of
// Run: Connections callers, each used by InFlight goroutines, which in an open loop
// share the rate. dial is called for each connection. Hosts and Prefix are the
// callers' business, and Delete and Multi are not possible.
func RunCallers(
	ctx context.Context, cfg Config, dial func(conn int) (Caller, error),
) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Mix.has(Delete) || cfg.Mix.has(Multi) {
		return nil, errors.New("callers have no delete or multi")
	}
	var callers []Caller
	defer func() {
		for _, c := range callers {
			_ = c.Close() // the results no longer depend on it
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
	return Measure(ctx, &cfg, func(rec *Recorder, begin time.Time) (tasks []func() error) {
		for i, c := range callers {
			for k := range cfg.InFlight {
				w := &user{id: i*cfg.InFlight + k, cfg: &cfg, rec: rec, caller: c, data: data}
				w.drawer = newDrawer(cfg.Seed, w.id, cfg.Keys, cfg.Zipf)
				if cfg.Rate > 0 {
					w.pace = newPace(begin, cfg.Rate, w.id, len(callers)*cfg.InFlight)
				}
				tasks = append(tasks, func() error { return w.run(ctx) })
			}
		}
		return tasks
	})
}

// user is one goroutine of RunCallers.
type user struct {
	id     int
	cfg    *Config
	rec    *Recorder
	caller Caller
	drawer *drawer
	data   []byte
	pace   *pace // nil in a closed loop

	created []string // those of Config.Latest, oldest first
}

func (w *user) run(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, w.rec.Until().Add(drainTimeout))
	defer cancel()
	for n := 0; ; n++ {
		start := time.Now()
		if w.pace != nil {
			if left := w.pace.at(n).Sub(start); left > 0 && !w.pace.sleep(left, ctx.Done()) {
				return context.Cause(ctx)
			}
			start = w.pace.start(n)
		}
		if now := time.Now(); !start.Before(w.rec.Until()) || !now.Before(w.rec.Until()) {
			w.unsent(n)
			return nil
		}
		call := Call{Op: w.cfg.Mix.draw(w.drawer.random), Data: w.data}
		if call.Op == Create {
			call.New = fmt.Sprintf("c%d-%d", w.id, n)
		} else if call.Key = w.drawer.draw(); w.cfg.Latest {
			w.newest(&call)
		}
		if err := w.caller.Do(ctx, call); err != nil {
			if ctx.Err() != nil {
				w.rec.Unanswered(start)
				return err
			}
			w.rec.Error(call.Op, err)
			continue
		}
		w.rec.Answer(w.id, call.Op, start, time.Now())
		if call.Op == Create && w.cfg.Latest {
			w.created = append(w.created, call.New)
		}
	}
}

// newest counts the key from the newest, as Config.Latest has it.
func (w *user) newest(c *Call) {
	if n := len(w.created); c.Key < n {
		c.New = w.created[n-1-c.Key]
	} else {
		c.Key = w.cfg.Keys - 1 - (c.Key - n)
	}
}

// unsent counts the requests from n on that should have been sent.
func (w *user) unsent(n int) {
	if w.pace == nil {
		return
	}
	for ; w.pace.at(n).Before(w.rec.Until()); n++ {
		w.rec.Unanswered(w.pace.at(n))
	}
}
