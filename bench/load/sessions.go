package load

import (
	"context"
	"fmt"
	"time"
)

// Sessions opens and closes sessions as fast as the servers let it: each of
// Connections loops connects, opens a session, ends it and disconnects. The
// operations of the result are "open session" (from dialing to the reply of
// the handshake) and "close session".
func Sessions(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.Mix = Mix{{openSession, 1}, {endSession, 1}}
	res, err := Measure(ctx, &cfg, func(rec *Recorder, _ time.Time) (tasks []func() error) {
		for i := range cfg.Connections {
			host := cfg.Hosts[i%len(cfg.Hosts)]
			tasks = append(tasks, func() error { return storm(ctx, &cfg, rec, i, host) })
		}
		return tasks
	})
	if res != nil {
		res.Kind = "sessions"
		res.Config.Mix = nil     // not one that could be asked for
		res.Total.PerSecond /= 2 // an opened and closed session is one
	}
	return res, err
}

// storm is one loop of Sessions.
func storm(ctx context.Context, cfg *Config, rec *Recorder, id int, host string) error {
	for start := time.Now(); start.Before(rec.Until()) && ctx.Err() == nil; start = time.Now() {
		c, err := connect(ctx, host, cfg.SessionTimeout, cfg.TLS, session{})
		if err != nil {
			rec.Dropped()
			return err
		}
		opened := time.Now()
		rec.Answer(id, openSession, start, opened)
		if err := c.closeSession(); err != nil {
			rec.Dropped()
			return fmt.Errorf("closing a session at %s: %w", host, err)
		}
		rec.Answer(id, endSession, opened, time.Now())
	}
	return nil
}
