package growth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
)

const (
	// snapshotRate is a load far below what the servers can do, so that a delay shows
	// and the load itself makes none; it is an open loop, in which a delay is counted for
	// every request that should have been sent meanwhile.
	snapshotRate = 2000
	// snapshotEvery is snapCount where snapshots are wanted: one in two seconds.
	snapshotEvery = 4000
	// never is snapCount where they are not.
	never = 1 << 30
	// snapshotLeast is the minimum time of a measurement: some snapshots.
	snapshotLeast = 10 * time.Second
)

// snapshot compares the latencies of writes with and without snapshots of a large
// tree being taken, and measures the memory and the restarts of that tree.
func (g *growth) snapshot(ctx context.Context) error {
	var told []string
	for _, every := range []int{never, snapshotEvery} {
		text, err := g.delayed(ctx, every)
		if err != nil {
			return err
		}
		told = append(told, text)
	}
	g.facts = append(g.facts, fmt.Sprintf("**A snapshot delays a write**: %s sets a second on a tree of %s znodes, "+
		"latency from the time at which each was due: %s.", report.Count(snapshotRate),
		report.Count(float64(g.o.Znodes)), strings.Join(told, "; ")))
	return nil
}

// delayed measures with one setting of snapCount.
func (g *growth) delayed(ctx context.Context, every int) (string, error) {
	e, err := g.up(ctx, system.Setup{Lines: []string{"snapCount=" + strconv.Itoa(every)}})
	if err != nil {
		return "", err
	}
	defer e.Down()
	if err := g.fill(ctx, e); err != nil {
		return "", err
	}
	cfg := g.config(e, load.Set, 16, 1024)
	cfg.Duration, cfg.Rate = max(g.o.Duration, snapshotLeast), snapshotRate
	before := written(e)
	r, err := e.Run(ctx, system.Load, cfg, 0)
	if err != nil {
		return "", err
	}
	l := &r.Total.Latency
	latencies := fmt.Sprintf("p50 %s, p99 %s, p99.9 %s, longest %s", report.Time(l.P50.Duration()),
		report.Time(l.P99.Duration()), report.Time(l.P999.Duration()), report.Time(l.Max.Duration()))
	if every == never {
		return fmt.Sprintf("with no snapshot %s, %s MB resident in the largest server", latencies,
			report.Count(float64(figureOf(0, r, &r.Total).Memory/1e6))), nil
	}
	all := written(e)[len(before):]
	if len(all) == 0 {
		return "", errors.New("no snapshot was taken")
	}
	longest := time.Duration(0)
	for _, took := range all {
		longest = max(longest, took)
	}
	if err := g.restarts(ctx, e); err != nil {
		return "", err
	}
	return fmt.Sprintf("with %d snapshots (on three servers, %s the longest) %s", len(all),
		report.Time(longest), latencies), nil
}

// fill makes the large tree.
func (g *growth) fill(ctx context.Context, e *system.Ensemble) error {
	cfg := g.config(e, load.Set, 1, 1)
	cfg.Keys, cfg.Prefix = g.o.Znodes, "/fill"
	_, err := e.Run(ctx, system.Memory, cfg, 0)
	return err
}

// written is how long each snapshot took, by the servers' logs.
func written(e *system.Ensemble) (all []time.Duration) {
	for _, p := range e.Processes {
		text, err := os.ReadFile(p.LogFile())
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			if _, rest, ok := bytes.Cut(line, []byte("snapshot written")); ok {
				_, took, _ := strings.Cut(string(rest), "took=")
				d, _ := time.ParseDuration(strings.Fields(took + " ")[0])
				all = append(all, d)
			}
		}
	}
	return all
}

// installed is how often a server has installed another's snapshot.
func installed(p *process.Process) int {
	text, err := os.ReadFile(p.LogFile())
	if err != nil {
		return 0
	}
	return bytes.Count(text, []byte("Installed remote snapshot"))
}

// catchUp kills a follower, continues until the logs no longer reach back to where it was, and
// measures how long it takes to catch up under load.
func (g *growth) catchUp(ctx context.Context) error {
	e, err := g.up(ctx, system.Setup{Lines: []string{"snapCount=" + strconv.Itoa(snapshotEvery)}})
	if err != nil {
		return err
	}
	defer e.Down()
	if err := g.fill(ctx, e); err != nil {
		return err
	}
	leader, err := load.Leader(ctx, e.Hosts)
	if err != nil {
		return err
	}
	behind := (leader + 1) % len(e.Processes)
	e.Processes[behind].Kill()
	others := g.config(e, load.Set, 1, 1)
	others.Hosts = []string{e.Hosts[leader], e.Hosts[(leader+2)%len(e.Hosts)]}
	others.PIDs = nil
	// Single writes are an entry of the log each.
	missed, err := g.miss(ctx, e, others, e.Hosts[leader])
	if err != nil {
		return err
	}
	before := installed(e.Processes[behind])
	others.Connections, others.Rate, others.InFlight = 16, snapshotRate, load.OpenInFlight
	others.Duration, others.Prefix = catchUpTime, "/under-load"
	var r *load.Result
	var loadErr error
	var wg sync.WaitGroup
	loading, stop := context.WithCancel(ctx)
	wg.Go(func() { r, loadErr = e.Run(loading, system.Load, others, 0) })
	took, current, err := g.comeBack(ctx, e, behind, missed)
	stop()
	wg.Wait()
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("the load: %w", loadErr)
	}
	how := "from the log alone"
	if installed(e.Processes[behind]) > before {
		how = "by a snapshot from the leader"
	}
	l := &r.Total.Latency
	g.facts = append(g.facts, fmt.Sprintf("**Catch-up** on a tree of %s znodes under %s sets a second: a "+
		"follower that has missed %s single writes takes clients %s after its start and has what it had "+
		"missed after %s, %s; meanwhile sets took p50 %s, p99 %s, at most %s.",
		report.Count(float64(g.o.Znodes)), report.Count(snapshotRate), report.Count(missedWrites),
		report.Time(took), report.Time(current), how, report.Time(l.P50.Duration()),
		report.Time(l.P99.Duration()), report.Time(l.Max.Duration())))
	return nil
}

const (
	// missedWrites is more than the log keeps after a snapshot (4,096 entries), and the
	// snapshot may be snapshotEvery old.
	missedWrites = 12_000
	// missedTime is how long they may take.
	missedTime = time.Minute
	// catchUpTime is how long a server may take to catch up.
	catchUpTime = 60 * time.Second
)

// miss writes until this many writes are missed, and returns the last one's zxid.
func (g *growth) miss(
	ctx context.Context, e *system.Ensemble, cfg load.Config, host string,
) (int64, error) {
	first, err := load.Zxid(ctx, host)
	if err != nil {
		return 0, err
	}
	cfg.Duration, cfg.WarmUp = 2*time.Second, 0
	for begin := time.Now(); ; {
		if _, err := e.Run(ctx, system.Load, cfg, 0); err != nil {
			return 0, err
		}
		last, err := load.Zxid(ctx, host)
		if err != nil || last-first >= missedWrites {
			return last, err
		}
		if time.Since(begin) > missedTime {
			return 0, fmt.Errorf("only %d writes within %v", last-first, missedTime)
		}
	}
}

// comeBack starts a server and returns the times until it takes clients and until it
// has applied a transaction.
func (g *growth) comeBack(
	ctx context.Context, e *system.Ensemble, server int, until int64,
) (serves, current time.Duration, err error) {
	start := time.Now()
	if err := e.Restart(server); err != nil {
		return 0, 0, err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if serves == 0 && e.Ready(ctx, server) == nil {
			serves = time.Since(start)
		}
		if serves != 0 {
			if z, err := load.Zxid(ctx, e.Hosts[server]); err == nil && z >= until {
				return serves, time.Since(start), nil
			}
		}
		if time.Since(start) > catchUpTime {
			return 0, 0, fmt.Errorf("the server has not caught up within %v", catchUpTime)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
}
