package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// dialsAtOnce bounds the connections that are being opened, so that no server's
// backlog overflows.
const dialsAtOnce = 64

// Run puts the load of a Config on its Hosts and measures it. It creates the
// znodes before and deletes them after. Connections that end on the way are
// counted; the error is that of the first if none is left, and otherwise nil.
// When ctx ends, so does the run, with an error.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	keys, data := newKeySpace(cfg.Prefix, cfg.Keys), value(cfg.Seed, cfg.ValueSize)
	if cfg.Reuse {
		keys.run = strconv.FormatInt(time.Now().UnixMicro(), 36) + "-"
	} else {
		err := asAdmin(ctx, &cfg, func(c *conn) error { return keys.build(ctx, c, data) })
		if err != nil {
			return nil, err
		}
	}
	res, err := runConnections(ctx, &cfg, keys, data)
	return res, errors.Join(err, cleanUp(ctx, &cfg, keys))
}

// cleanUpTime is how long a person may wait for the znodes to be deleted after
// an interrupt.
const cleanUpTime = time.Minute

// cleanUp deletes what the run has created, also after an interrupt.
func cleanUp(ctx context.Context, cfg *Config, keys *keySpace) error {
	if cfg.Keep {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	return asAdmin(ctx, cfg, func(c *conn) error { return keys.clear(ctx, c) })
}

// adminTimeout is more than a server needs for a list of all children of a large znode, which
// is the longest reply while a tree is built and deleted.
const adminTimeout = time.Minute

// asAdmin does something in a session of its own, at the first host that takes
// it.
func asAdmin(ctx context.Context, cfg *Config, do func(*conn) error) error {
	var errs []error
	for _, host := range cfg.Hosts {
		d := cfg.dialer()
		c, err := d.connect(ctx, host, session{})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.patience = adminTimeout
		stop := context.AfterFunc(ctx, func() { c.nc.Close() })
		defer stop()
		return errors.Join(do(c), c.closeSession())
	}
	return errors.Join(errs...)
}

func runConnections(
	ctx context.Context, cfg *Config, keys *keySpace, data []byte,
) (*Result, error) {
	conns, err := connectAll(ctx, cfg, cfg.Connections)
	if err != nil {
		closeAll(conns)
		return nil, err
	}
	// An end of ctx breaks the connections, which ends their workers.
	defer context.AfterFunc(ctx, func() { closeSockets(conns) })()
	var workers []*worker
	defer func() {
		var last []*conn
		for _, w := range workers {
			last = append(last, w.conn)
		}
		closeAll(last)
	}()
	return Measure(ctx, cfg, func(rec *Recorder, begin time.Time) (tasks []func() error) {
		for i, c := range conns {
			w := &worker{id: i, conn: c, requests: newRequester(cfg, keys, data, i),
				inFlight: cfg.InFlight, rec: rec, timeout: cfg.SessionTimeout, acknowledged: cfg.Acknowledged}
			if cfg.Rate > 0 {
				w.pace = newPace(begin, cfg.Rate, i, len(conns))
			}
			if cfg.Return {
				c.patience = clientPatience(cfg.SessionTimeout)
				w.again = func(c *conn) *conn { return again(ctx, cfg, rec, i, c) }
			}
			workers = append(workers, w)
			tasks = append(tasks, w.run)
		}
		return tasks
	})
}

// again connects client i to its session, or to a new one if that has expired, until the end of the measured time,
// when it returns nil.
func again(ctx context.Context, cfg *Config, rec *Recorder, i int, c *conn) *conn {
	until, cancel := context.WithDeadline(ctx, rec.Until())
	defer cancel()
	h := home{hosts: cfg.Hosts, at: i % len(cfg.Hosts), conn: c, dialer: cfg.dialer()}
	h.leave()
	if !h.comeBack(until, rec.Expired) {
		return nil
	}
	context.AfterFunc(ctx, func() { h.conn.nc.Close() })
	h.conn.patience = clientPatience(cfg.SessionTimeout)
	return h.conn
}

// Measure runs tasks, each in a goroutine, for the warm-up and the measured time,
// and samples meanwhile.
func Measure(
	ctx context.Context, cfg *Config, start func(rec *Recorder, begin time.Time) []func() error,
) (*Result, error) {
	begin := time.Now()
	from := begin.Add(cfg.WarmUp)
	rec := newRecorder(cfg.Mix, from, from.Add(cfg.Duration))
	res := &Result{Kind: "load", Started: from, Config: *cfg}
	tasks := start(rec, begin)
	errs := make([]error, len(tasks))
	var wg sync.WaitGroup
	for i, run := range tasks {
		wg.Go(func() { errs[i] = run() })
	}
	ended := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() { sample(cfg, rec, res, ended) })
	wg.Wait()
	close(ended)
	sampler.Wait()
	rec.fill(res)
	return res, verdict(ctx, errs)
}

// verdict is an error if the run was interrupted or no connection succeeded.
func verdict(ctx context.Context, errs []error) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("interrupted: %w", err)
	}
	var first error
	for _, err := range errs {
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if first != nil {
		return fmt.Errorf("no connection has lasted: %w", first)
	}
	return nil
}

// sample fills Timeline, Servers and Generator until ended is closed.
func sample(cfg *Config, rec *Recorder, res *Result, ended <-chan struct{}) {
	sampleUntil(rec.from, ended, func(now time.Time, last *probe) {
		if s, ok := last.next(rec, now); ok && cfg.Progress != nil {
			s.WarmUp = true
			cfg.Progress(s)
		}
	}, cfg.Interval)
	measured := func(begun bool) {
		if cfg.Measured != nil {
			cfg.Measured(begun)
		}
	}
	measured(true)
	before := readUsage(cfg.PIDs)
	sampleUntil(rec.until, ended, func(now time.Time, last *probe) {
		s, ok := last.next(rec, now)
		if !ok {
			return
		}
		res.Timeline = append(res.Timeline, s)
		if cfg.Progress != nil {
			cfg.Progress(s)
		}
	}, cfg.Interval)
	measured(false)
	used := readUsage(cfg.PIDs).since(before)
	res.Servers, res.Generator = used.servers, used.self
}

// probe has the counts at the last sample.
type probe struct {
	at      time.Time
	latency *Counts
	all     uint64
}

// next makes a sample of the time since the last one.
func (p *probe) next(rec *Recorder, now time.Time) (Sample, bool) {
	latency, all := rec.sums()
	last := *p
	*p = probe{now, latency, all}
	if last.latency == nil || !now.After(last.at) {
		return Sample{}, false
	}
	news := latency.Since(last.latency)
	return Sample{
		At: now.Sub(rec.from), PerSecond: float64(all-last.all) / now.Sub(last.at).Seconds(),
		P50: Micros(news.Percentile(50)), P99: Micros(news.Percentile(99)),
		P999: Micros(news.Percentile(99.9)), Max: Micros(news.Max()),
	}, true
}

// sampleUntil calls each at once, at every interval, and at the end; when all ends
// earlier, unless a sample has just been taken.
func sampleUntil(
	end time.Time, ended <-chan struct{}, each func(time.Time, *probe), interval time.Duration,
) {
	var last probe
	each(time.Now(), &last)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	for {
		select {
		case now := <-ticker.C:
			if now.Before(end) {
				each(time.Now(), &last)
			}
		case <-timer.C:
			each(time.Now(), &last)
			return
		case <-ended:
			if now := time.Now(); now.Sub(last.at) > interval/2 {
				each(now, &last)
			}
			return
		}
	}
}

// connectAll opens connections, spread over the hosts in turn. On errors it
// returns those that are open.
func connectAll(ctx context.Context, cfg *Config, n int) ([]*conn, error) {
	all, errs, d := make([]*conn, n), make([]error, n), cfg.dialer()
	tickets := make(chan struct{}, dialsAtOnce)
	var wg sync.WaitGroup
	for i := range n {
		tickets <- struct{}{}
		wg.Go(func() {
			all[i], errs[i] = d.connect(ctx, cfg.Hosts[i%len(cfg.Hosts)], session{})
			<-tickets
		})
	}
	wg.Wait()
	var open []*conn
	for _, c := range all {
		if c != nil {
			open = append(open, c)
		}
	}
	for i, err := range errs {
		if err != nil {
			return open, fmt.Errorf("connection %d of %d: %w", i+1, n, err)
		}
	}
	return open, nil
}

func closeSockets(conns []*conn) {
	for _, c := range conns {
		c.nc.Close()
	}
}

// closeAll ends the sessions, several at once, and returns the errors of those that had already
// ended; most callers have counted them.
func closeAll(conns []*conn) (lost []error) {
	tickets := make(chan struct{}, dialsAtOnce)
	var wg sync.WaitGroup
	var mu sync.Mutex // protects lost
	for _, c := range conns {
		tickets <- struct{}{}
		wg.Go(func() {
			if err := c.closeSession(); err != nil {
				mu.Lock()
				lost = append(lost, err)
				mu.Unlock()
			}
			<-tickets
		})
	}
	wg.Wait()
	return lost
}
