package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
	"github.com/zk-lite/zk-lite/internal/testkit/network"
)

// root is the znode below which everything happens.
const root = "/failover"

// runner measures one configuration.
type runner struct {
	c        *config
	system   system.System
	dir      string // for the servers' data
	logs     *keeper
	rng      *rand.Rand
	ensemble *system.Ensemble
	network  *network.Network // nil: loopback
	sessions []user
}

// result is the result of one configuration.
type result struct {
	outages []*outage
	returns []*catchUp
	lines   []string // one of each fault
}

// add notes and shows the line of a fault.
func (r *result) add(line string) {
	r.lines = append(r.lines, line)
	fmt.Fprintln(os.Stderr, line)
}

// run measures all kills. Results before an error are returned, too.
func (r *runner) run(ctx context.Context) (all *result, err error) {
	all = &result{}
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	o := system.Setup{Servers: r.c.servers, Sync: r.c.Sync, Seed: r.c.Seed, Lines: r.c.settings,
		Fill: r.c.fault == faultFull}
	if r.c.system != system.Apache {
		o.HTTP = true
		o.Lines = append(slices.Clone(o.Lines), "logger.level=debug")
		if r.c.fault == faultFull {
			o.Lines = append(o.Lines, "log.direct=false") // else its log is in room that is reserved
		}
	}
	if r.c.rtt > 0 {
		if r.network, err = network.New(r.c.servers, r.c.Seed); err != nil {
			return all, err
		}
		defer r.network.Close()
		r.network.SetServers(network.Link{Delay: r.c.rtt / 2})
		o.Network = r.network
	}
	if r.ensemble, err = system.Up(ctx, r.system, r.dir, o); err != nil {
		return all, err
	}
	defer func() { r.ensemble.Down() }()
	if err := r.prepare(ctx, &background); err != nil {
		return all, err
	}
	for n := 1; n <= r.c.Rounds; n++ {
		if err := r.measureOne(ctx, n, all); err != nil {
			return all, fmt.Errorf("%s, fault %d: %w", r.c, n, err)
		}
	}
	return all, nil
}

func (r *runner) measureOne(ctx context.Context, n int, all *result) error {
	if r.c.fault == faultReturn {
		one, err := r.catchUp(ctx)
		if err == nil {
			all.returns = append(all.returns, one)
			all.add(one.line(n))
		}
		return err
	}
	one, err := r.once(ctx, n)
	if err != nil {
		return err
	}
	all.outages = append(all.outages, one)
	all.add(one.line(r.c))
	return r.logs.keep(r.c, one)
}

// prepare makes the znodes, the sessions and the background load of the machine.
func (r *runner) prepare(ctx context.Context, background *sync.WaitGroup) error {
	if r.c.Znodes > 0 {
		cfg := load.Default()
		cfg.Hosts, cfg.Keys, cfg.Prefix, cfg.Keep = r.ensemble.Hosts, r.c.Znodes, "/filled", true
		if _, err := load.Fill(ctx, cfg); err != nil {
			return fmt.Errorf("filling the tree: %w", err)
		}
	}
	w, err := load.NewWriter(ctx, r.ensemble.Hosts, root, 0, r.c.SessionTimeout)
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := r.openSessions(ctx, background); err != nil {
		return err
	}
	if !r.c.busy {
		return nil
	}
	for range runtime.NumCPU() {
		c := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
		if err := c.Start(); err != nil {
			return fmt.Errorf("keeping the machine busy: %w", err)
		}
		background.Go(func() { _ = c.Wait() }) // killed at the end
	}
	return nil
}

// pingsATimeout is how many pings a session sends per timeout.
const pingsATimeout = 3

// openAtOnce bounds the sessions that are being opened.
const openAtOnce = 64

func (r *runner) openSessions(ctx context.Context, background *sync.WaitGroup) error {
	tickets, errs := make(chan struct{}, openAtOnce), make([]error, r.c.Sessions)
	r.sessions = make([]user, r.c.Sessions)
	var opening sync.WaitGroup
	for i := range r.sessions {
		tickets <- struct{}{}
		opening.Go(func() {
			r.sessions[i], errs[i] = load.NewWriter(ctx, rotated(r.ensemble.Hosts, i), "",
				r.c.SessionTimeout/pingsATimeout, r.c.SessionTimeout)
			<-tickets
		})
	}
	opening.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("opening sessions: %w", err)
	}
	for _, u := range r.sessions {
		background.Go(func() { u.Run(ctx) })
	}
	return nil
}

// rotated is a list that begins with another element.
func rotated(list []string, by int) []string {
	by %= len(list)
	return append(append([]string{}, list[by:]...), list[:by]...)
}

// settleTime is how long an ensemble may take until all servers follow one leader and have caught up.
const settleTime = 3 * time.Minute
