package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// Returns is the part of the results that Reconnect writes.
const Returns = "reconnect"

// Reconnect kills the leader of three servers at which all clients are, and measures how long it takes until all of
// them are back with their sessions, without TLS and with it. With TLS servers and clients show certificates to each
// other on every connection, also between servers; each return is a full handshake. Clients and servers share the
// machine, so that both sides of all handshakes are computed on it. An expired session is an error.
func Reconnect(ctx context.Context, site *system.Site, o *system.Options) error {
	names := o.Names(system.Ours, system.AllTLS)
	for _, name := range names {
		if !hasLeader(name) {
			return errNoLeader(name)
		}
	}
	cfg := load.Default()
	cfg.Connections, cfg.SessionTimeout = o.Sessions, o.SessionTimeout
	table := report.NewTable("system", "sessions", "back: p50", "p99", "all", "returns a second",
		"CPU of both servers, a return", "expired")
	head := system.Head{Began: time.Now(), How: fmt.Sprintf("%d rounds", o.Rounds), End: errors.New("still running")}
	var all []*load.Reconnected
	save := func() error {
		text := fmt.Sprintf("## Suite %s\n%s%s\n", Returns, site.Head(&head), table)
		return site.Save(Returns, head.Began, text, all, head.End)
	}
	for range o.Rounds {
		for _, name := range names {
			s, err := site.System(name, o.Builds)
			if err != nil {
				return err
			}
			r, err := comeBack(ctx, s, site.Dir, system.Setup{Sync: o.Sync, Seed: o.Seed}, cfg)
			if err != nil {
				return errors.Join(err, save())
			}
			n := time.Duration(o.Sessions)
			table.Row(name, o.Sessions, short(r.Clients.P50), short(r.Clients.P99), short(load.Micros(r.All)),
				fmt.Sprintf("%.0f", float64(n)/r.All.Seconds()), (r.CPU / n).Round(time.Microsecond), r.Expired)
			all = append(all, r)
			if r.Expired > 0 {
				return errors.Join(fmt.Errorf("%d sessions have expired", r.Expired), save())
			}
			if err := save(); err != nil {
				return err
			}
		}
	}
	head.End = nil
	return save()
}

// comeBack measures one return of all clients to the ensemble of a system.
func comeBack(
	ctx context.Context, s system.System, dir string, setup system.Setup, cfg load.Config,
) (*load.Reconnected, error) {
	e, err := system.Up(ctx, s, dir, setup)
	if err != nil {
		return nil, err
	}
	defer e.Down()
	cfg.Hosts, cfg.PIDs = e.Hosts, e.PIDs()
	if z, ok := s.(*system.ZKLite); ok {
		cfg.TLS = z.TLS
	}
	kill, err := load.KillLeader(cfg.Hosts, cfg.PIDs, cfg.TLS)
	if err != nil {
		return nil, err
	}
	return load.Reconnect(ctx, cfg, kill)
}

func short(m load.Micros) time.Duration { return time.Duration(m).Round(time.Millisecond) }
