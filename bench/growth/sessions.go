package growth

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

const (
	// besideRate is the load beside the sessions of a curve.
	besideRate = 2000
	// heldByOne is how many sessions a process keeps: many systems permit it 20,000 open files.
	heldByOne = 15_000
	// openingTime is how long the sessions may take to open.
	openingTime = 5 * time.Minute
)

// sessions grows the number of sessions that have an ephemeral znode each and send only pings, beside a load at a fixed
// rate: on three servers as many as they may have files open, and four times as many on three voters and three
// observers. A session that is lost is an error.
func (g *growth) sessions(ctx context.Context) error {
	beside := fmt.Sprintf("beside 50 %% get, 50 %% set, %d a second on 64 connections", besideRate)
	c := &curve{ID: "sessions", X: "sessions", Times: true, Title: "sessions with an ephemeral each, " + beside}
	if err := g.besideSessions(ctx, c, []int{1, 1000, 5000, 10_000, 15_000}, system.Setup{}); err != nil {
		return err
	}
	c = &curve{ID: "sessions-observers", X: "sessions", Times: true,
		Title: "sessions with an ephemeral each on three voters and three observers, " + beside}
	return g.besideSessions(ctx, c, []int{1, 15_000, 60_000}, system.Setup{Servers: 6, Observers: 3})
}

// besideSessions measures a curve, and what the sessions take of all servers' memory beyond that of the first point.
func (g *growth) besideSessions(ctx context.Context, c *curve, xs []int, setup system.Setup) error {
	first := int64(0)
	for i, x := range xs {
		took, memory, err := g.besideHeld(ctx, c, x, setup)
		if err != nil {
			return fmt.Errorf("%d sessions: %w", x, err)
		}
		if i == 0 {
			first = memory
			continue
		}
		g.facts = append(g.facts, fmt.Sprintf("**%d sessions with an ephemeral each** (%s): open after %s; %d MB "+
			"resident in all servers together, %.1f KB a session more than with %d.", x, c.ID,
			took.Round(100*time.Millisecond), memory/1e6, float64(memory-first)/1e3/float64(x), xs[0]))
	}
	return nil
}

// besideHeld measures a point on an ensemble of its own. It returns how long x sessions took to open, and the resident
// memory of all servers.
func (g *growth) besideHeld(
	ctx context.Context, c *curve, x int, setup system.Setup,
) (took time.Duration, memory int64, err error) {
	e, err := g.up(ctx, setup)
	if err != nil {
		return 0, 0, err
	}
	defer e.Down()
	begin := time.Now()
	release, err := g.hold(ctx, e, x)
	if err != nil {
		return 0, 0, err
	}
	defer release()
	took = time.Since(begin)
	cfg := g.config(e, load.Get, 64, load.OpenInFlight)
	cfg.Mix, cfg.Rate = load.Mix{{Op: load.Get, Weight: 1}, {Op: load.Set, Weight: 1}}, besideRate
	if err := g.point(ctx, e, c, float64(x), cfg); err != nil {
		return 0, 0, err
	}
	switch n, err := held(ctx, e); {
	case err != nil:
		return 0, 0, err
	case n < x:
		return 0, 0, fmt.Errorf("at the end there are %d", n)
	}
	for _, pid := range e.PIDs() {
		p, err := load.ReadProcess(pid)
		if err != nil {
			return 0, 0, err
		}
		memory += p.RSS
	}
	return took, memory, nil
}

// hold has processes of their own open and keep x sessions until release is called.
func (g *growth) hold(ctx context.Context, e *system.Ensemble, x int) (release func(), err error) {
	ours, err := g.site.System(system.Ours, g.o.Builds)
	if err != nil {
		return nil, err
	}
	holding, stop := context.WithCancel(ctx)
	var holders sync.WaitGroup
	release = func() { stop(); holders.Wait() }
	ended := make(chan error, x/heldByOne+1)
	for first := 0; first < x; first += heldByOne {
		c := exec.CommandContext(holding, ours.(*system.ZKLite).Binary(), "bench", "idle", "--ephemeral", "-q",
			"--server", strings.Join(e.Hosts, ","), "--prefix", "/sessions"+strconv.Itoa(first),
			"--connections", strconv.Itoa(min(heldByOne, x-first)), "--duration", "24h")
		holders.Go(func() {
			out, err := c.CombinedOutput()
			ended <- fmt.Errorf("a process with sessions has ended: %w: %.500s", err, out)
		})
	}
	timeout := time.NewTimer(openingTime)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; {
		if n, err = held(ctx, e); n >= x {
			return release, nil
		}
		select {
		case <-tick.C:
			continue
		case err = <-ended:
		case <-timeout.C:
			err = errors.Join(fmt.Errorf("%d sessions were open after %v", n, openingTime), err)
		}
		release()
		return nil, err
	}
}

// held is how many sessions have their connections and an ephemeral znode.
func held(ctx context.Context, e *system.Ensemble) (n int, err error) {
	connections, ephemerals := 0, 0
	for _, host := range e.Hosts {
		text, err := load.FourLetter(ctx, host, "mntr")
		if err != nil {
			return 0, err
		}
		connections += metric(text, "zk_num_alive_connections")
		ephemerals = metric(text, "zk_ephemerals_count")
	}
	return min(connections, ephemerals), nil
}

// metric is a number of mntr's, 0 if it is not there.
func metric(text, name string) int {
	_, rest, _ := strings.Cut(text, name+"\t")
	digits, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.Atoi(digits)
	return n
}
