package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/client"
)

// The clients, as bench/compare names them.
const (
	goZooKeeper = "go-zookeeper"
	blocking    = "zk-lite"
	async       = "zk-lite-async"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument: %s, %s or %s", goZooKeeper, blocking, async)
	}
	var cfg load.Config
	if err := json.NewDecoder(os.Stdin).Decode(&cfg); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	cfg.Keys = keys
	if err := cfg.Check(); err != nil {
		return err
	}
	host := cfg.Hosts[0]
	if err := fill(ctx, host); err != nil {
		return err
	}
	var before, after runtime.MemStats
	var used [2]load.Process
	cfg.Measured = func(begun bool) {
		if begun {
			used[0], _ = load.ReadProcess(os.Getpid()) // our own is always there
			runtime.ReadMemStats(&before)
			return
		}
		used[1], _ = load.ReadProcess(os.Getpid())
		runtime.ReadMemStats(&after)
	}
	res, err := drive(ctx, args[0], host, &cfg)
	if err != nil {
		return err
	}
	res.Generator = used[1].CPU - used[0].CPU
	answers := max(res.Total.PerSecond*res.Elapsed.Seconds(), 1)
	return json.NewEncoder(os.Stdout).Encode(struct {
		Result *load.Result
		Allocs float64 // of this process, per answer
	}{res, float64(after.Mallocs-before.Mallocs) / answers})
}

// fill creates the znodes, unless a run before has done so.
func fill(ctx context.Context, host string) error {
	o, err := dialOurs(host)
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }() // ending the session does not change the created znodes
	if err := o.c.EnsurePath(ctx, "/clients", client.Persistent); err != nil {
		return err
	}
	for _, p := range o.paths {
		_, _, err := o.c.Create(ctx, p, make([]byte, 100), client.Persistent)
		if errors.Is(err, client.ErrNodeExists) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func drive(ctx context.Context, name, host string, cfg *load.Config) (*load.Result, error) {
	switch name {
	case goZooKeeper:
		return load.RunCallers(ctx, *cfg, func(int) (load.Caller, error) { return dialTheirs(host) })
	case blocking:
		return load.RunCallers(ctx, *cfg, func(int) (load.Caller, error) { return dialOurs(host) })
	case async:
		o, err := dialOurs(host)
		if err != nil {
			return nil, err
		}
		defer func() { _ = o.Close() }() // it has been measured
		return runAsync(ctx, o, cfg, make([]byte, cfg.ValueSize))
	}
	return nil, fmt.Errorf("client %q is unknown", name)
}
