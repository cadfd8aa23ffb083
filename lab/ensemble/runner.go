package ensemble

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
)

const (
	// sessionTimeout of the candidates, and so how long the others wait for the
	// killed one: the least that a server grants by default.
	sessionTimeout = 4 * time.Second
	// patience bounds the whole scenario.
	patience = 2 * time.Minute
	// dialers is how many candidates connect at a time.
	dialers = 32
	// lookEvery is how often the runner checks whether all are in the queue. No counted value
	// depends on it.
	lookEvery = 5 * time.Millisecond
)

// Runner performs scenarios on the servers of a connect string
// ("host:port,host:port/chroot"). It implements election.Runner.
type Runner struct{ Servers string }

// run is one performance.
type run struct {
	all  []*candidate
	leds chan led // one from every candidate at most
	wg   sync.WaitGroup
	stop context.CancelFunc

	recorder *recorder // nil if nothing is drawn
}

// led reports that a candidate leads, or why it never will.
type led struct {
	who  *candidate
	lost <-chan struct{}
	err  error
}

// KillLeader implements election.Runner. The election's znodes are below a new
// one that the servers remove when it is empty.
func (r Runner) KillLeader(ctx context.Context, k election.KillLeader) (
	o election.Outcome, err error,
) {
	if err := k.Check(); err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("not done after %v", patience))
	defer cancel()
	p := &run{leds: make(chan led, k.Candidates), stop: cancel}
	defer func() { err = errors.Join(err, p.end()) }()
	if err := p.connect(ctx, r.Servers, k.Candidates); err != nil {
		return o, err
	}
	p.campaign(ctx, k.Herd)
	first, err := p.leader(ctx)
	if err != nil {
		return o, err
	}
	if err := p.inLine(ctx, first.who); err != nil {
		return o, err
	}
	return p.killAndCount(ctx, first)
}

// campaign starts all candidates of an election below a new znode.
func (p *run) campaign(ctx context.Context, herd bool) {
	form := stand(standInLine)
	if herd {
		form = standInHerd
	}
	path := "/zk-lite-lab-" + rand.Text()
	for _, c := range p.all {
		p.wg.Go(func() {
			lost, err := form(ctx, c.client, path)
			p.leds <- led{c, lost, err}
		})
	}
}

// killAndCount kills the leader and waits until there is a new one and all others watch again.
func (p *run) killAndCount(ctx context.Context, first led) (o election.Outcome, err error) {
	for _, c := range p.all {
		c.tap.reset()
	}
	first.who.tap.kill()
	second, err := p.leader(ctx)
	if err != nil {
		return o, err
	}
	if err := p.inLine(ctx, first.who, second.who); err != nil {
		return o, err
	}
	for _, c := range p.all {
		if c == first.who {
			continue
		}
		// The answer follows every event of earlier writes.
		if err := c.client.Sync(ctx, "/"); err != nil {
			return o, explain(ctx, err)
		}
		events, requests := c.tap.counts()
		o.Events += events
		o.Requests += requests
	}
	o.Changed = second.who != first.who
	for _, l := range []led{first, second} {
		select {
		case <-l.lost:
		default:
			o.Leaders++
		}
	}
	for len(p.leds) > 0 { // any other leader would be one too many
		if l := <-p.leds; l.err == nil {
			o.Leaders++
		}
	}
	return o, nil
}

// connect opens the sessions.
func (p *run) connect(ctx context.Context, servers string, n int) error {
	p.all = make([]*candidate, n)
	errs := make([]error, n)
	slots := make(chan struct{}, dialers)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			t := newTap(sim.ID(i+1), p.recorder)
			c, err := client.Connect(ctx, servers,
				client.WithDialer(t.dial), client.WithSessionTimeout(sessionTimeout), client.WithLogger(nil))
			p.all[i], errs[i] = &candidate{c, t}, err
		})
	}
	wg.Wait()
	// All of them are the same.
	if failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil }); len(failed) > 0 {
		return explain(ctx, fmt.Errorf("%d of %d candidates have no session: %w",
			len(failed), n, failed[0]))
	}
	return nil
}

// leader waits for the next candidate that leads.
func (p *run) leader(ctx context.Context) (led, error) {
	select {
	case l := <-p.leds:
		return l, explain(ctx, l.err)
	case <-ctx.Done():
		return led{}, fmt.Errorf("waiting for a leader: %w", context.Cause(ctx))
	}
}

// inLine waits until every candidate but those given watches another's znode.
func (p *run) inLine(ctx context.Context, but ...*candidate) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		waiting := len(but)
		for _, c := range p.all {
			if c.tap.queued() && !slices.Contains(but, c) {
				waiting++
			}
		}
		if waiting == len(p.all) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d candidates in line: %w",
				waiting, len(p.all), context.Cause(ctx))
		}
	}
}

// end closes the sessions, with which the znodes go.
func (p *run) end() error {
	p.stop()
	p.wg.Wait()
	errs := make([]error, len(p.all))
	var wg sync.WaitGroup
	for i, c := range p.all {
		if c == nil || c.client == nil {
			continue
		}
		wg.Go(func() {
			// The killed one cannot close its session, which is the point.
			if err := c.client.Close(); !errors.Is(err, client.ErrNotClosed) {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// explain adds advice for an operator to an error.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", err, cause)
		}
		return fmt.Errorf("%w; does the server allow so many connections "+
			"from here (maxClientCnxns)?", err)
	}
	return err
}
