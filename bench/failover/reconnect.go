// Command reconnect kills the leader of three real server processes at which all clients are, and says how long it
// takes until all of them are back with their sessions, without TLS and with it.
//
//	go run ./bench/reconnect -sessions 10000 -rounds 3
//
// With TLS servers and clients show certificates to each other on every connection, also between servers; each return
// is a full handshake. Clients and servers share the machine, so that both sides of all handshakes are computed on
// it. An expired session is an error.
//
// It starts what packages system and load start, and no goroutine of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "reconnect:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("reconnect", flag.ContinueOnError)
	sessions := f.Int("sessions", 10_000, "sessions at the leader")
	rounds := f.Int("rounds", 3, "how often, without TLS and with it")
	timeout := f.Duration("session-timeout", 30*time.Second, "of the sessions")
	dir := f.String("dir", "", "directory on the disk to use; none: the system's for temporary files")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 || *rounds < 1 {
		return errors.New("want no arguments, and -rounds from 1")
	}
	site, err := system.NewSite(*dir)
	if err != nil {
		return err
	}
	defer site.Close()
	plain, err := system.NewZKLite(site.Root, site.Dir)
	if err != nil {
		return err
	}
	secure, err := plain.Secure("zk-lite-tls", site.Dir, true)
	if err != nil {
		return err
	}
	cfg := load.Default()
	cfg.Connections, cfg.SessionTimeout = *sessions, *timeout
	fmt.Fprintln(out, "| | sessions | back: p50 | p99 | all | returns a second | "+
		"CPU of both servers, a return | expired |\n"+
		"|---|---|---|---|---|---|---|---|")
	for range *rounds {
		for _, z := range []*system.ZKLite{plain, secure} {
			if err := once(ctx, z, site.Dir, cfg, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// once measures a system and prints a line.
func once(ctx context.Context, z *system.ZKLite, dir string, cfg load.Config, out io.Writer) error {
	e, err := system.Up(ctx, z, dir, system.Options{})
	if err != nil {
		return err
	}
	defer e.Down()
	cfg.Hosts, cfg.PIDs, cfg.TLS = e.Hosts, e.PIDs(), z.TLS
	kill, err := load.KillLeader(cfg.Hosts, cfg.PIDs, cfg.TLS)
	if err != nil {
		return err
	}
	r, err := load.Reconnect(ctx, cfg, kill)
	if err != nil {
		return err
	}
	n := time.Duration(cfg.Connections)
	fmt.Fprintf(out, "| %s | %d | %v | %v | %v | %.0f | %v | %d |\n", z.Name(), n,
		short(r.Clients.P50), short(r.Clients.P99), short(load.Micros(r.All)),
		float64(n)/r.All.Seconds(), (r.CPU / n).Round(time.Microsecond), r.Expired)
	if r.Expired > 0 {
		return fmt.Errorf("%d sessions have expired", r.Expired)
	}
	return nil
}

func short(m load.Micros) time.Duration { return time.Duration(m).Round(time.Millisecond) }
