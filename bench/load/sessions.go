package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// Sessions opens and closes sessions as fast as the servers permit: each of Connections loops
// connects, opens a session, ends it and disconnects. The operations of the result are "open
// session" (from dialing to the reply of the handshake) and "close session".
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
	d := cfg.dialer()
	for start := time.Now(); start.Before(rec.Until()) && ctx.Err() == nil; start = time.Now() {
		c, err := d.connect(ctx, host, session{})
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

// Churn opens sessions, creates an ephemeral znode in each, and closes them, as fast as the servers permit, each of
// Connections loops one after the other. One operation is all of that.
func Churn(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.Mix, cfg.Keys = Mix{{Session, 1}}, 1
	keys := newKeySpace(cfg.Prefix, cfg.Keys)
	data := value(cfg.Seed, cfg.ValueSize)
	if err := asAdmin(ctx, &cfg, func(c *conn) error { return keys.build(ctx, c, data) }); err != nil {
		return nil, err
	}
	res, err := Measure(ctx, &cfg, func(rec *Recorder, _ time.Time) (tasks []func() error) {
		for i := range cfg.Connections {
			host, path := cfg.Hosts[i%len(cfg.Hosts)], fmt.Sprintf("%s/e%d", keys.newDir(), i)
			tasks = append(tasks, func() error { return churn(ctx, &cfg, rec, i, host, path, data) })
		}
		return tasks
	})
	if res != nil {
		res.Kind, res.Config.Mix = "sessions", nil // not one that could be asked for
	}
	return res, errors.Join(err, cleanUp(ctx, &cfg, keys))
}

// churn is one loop of Churn. The znode's path can be the same each time, as a session is closed with its znodes.
func churn(ctx context.Context, cfg *Config, rec *Recorder, id int, host, path string, data []byte) error {
	d := cfg.dialer()
	create := &wire.CreateRequest{Path: path, Data: data, ACL: znode.OpenACL, Mode: znode.Ephemeral}
	for start := time.Now(); start.Before(rec.Until()) && ctx.Err() == nil; start = time.Now() {
		c, err := d.connect(ctx, host, session{})
		if err != nil {
			rec.Dropped()
			return err
		}
		c.nc.SetDeadline(start.Add(clientPatience(cfg.SessionTimeout)))
		if _, err = c.do(wire.OpCreate, create); err != nil {
			err = fmt.Errorf("an ephemeral znode: %w", err)
		}
		if err = errors.Join(err, c.closeSession()); err != nil {
			rec.Dropped()
			return fmt.Errorf("a session at %s: %w", host, err)
		}
		rec.Answer(id, Session, start, time.Now())
	}
	return nil
}

// Idle keeps Connections sessions alive that send no requests, each with a ping every third of
// its timeout, as ZooKeeper's clients do, the pings evenly spread. It measures the cost to the
// servers: Servers of the result. Sessions that were lost meanwhile count as dropped. With ephemeral
// each has an ephemeral znode of ValueSize bytes, all children of Prefix, which stays.
func Idle(ctx context.Context, cfg Config, ephemeral bool) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	conns, err := connectAll(ctx, &cfg, cfg.Connections)
	if err == nil && ephemeral {
		err = createEach(ctx, &cfg, conns)
	}
	if err != nil {
		closeAll(conns)
		return nil, err
	}
	pings := 0
	res, err := Measure(ctx, &cfg, func(rec *Recorder, begin time.Time) []func() error {
		return []func() error{func() error {
			pings = ping(ctx, conns, begin, rec, cfg.SessionTimeout/pingsATimeout)
			return nil
		}}
	})
	res.Kind, res.Config.Mix, res.Ops = "idle", nil, nil
	res.Total = OpResult{Name: "ping", PerSecond: float64(pings) / res.Elapsed.Seconds()}
	// The reply follows those to all pings, so it shows that all arrived.
	lost := closeAll(conns)
	res.Dropped = len(lost)
	if len(lost) == len(conns) {
		err = errors.Join(err, fmt.Errorf("no session has lasted: %w", lost[0]))
	}
	return res, err
}

// createEach creates an ephemeral znode in each session.
func createEach(ctx context.Context, cfg *Config, conns []*conn) error {
	keys, data := newKeySpace(cfg.Prefix, 1), value(cfg.Seed, cfg.ValueSize)
	if err := asAdmin(ctx, cfg, func(c *conn) error { return keys.build(ctx, c, data) }); err != nil {
		return err
	}
	errs, tickets := make([]error, len(conns)), make(chan struct{}, dialsAtOnce)
	var wg sync.WaitGroup
	for i, c := range conns {
		tickets <- struct{}{}
		wg.Go(func() {
			c.nc.SetDeadline(time.Now().Add(clientPatience(cfg.SessionTimeout)))
			_, errs[i] = c.do(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("%s/live%d", cfg.Prefix, i),
				Data: data, ACL: znode.OpenACL, Mode: znode.Ephemeral})
			c.nc.SetDeadline(time.Time{})
			<-tickets
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("creating ephemeral znodes: %w", err)
	}
	return nil
}

// ping sends pings in turn, so that each connection has one in every interval,
// until the end of the run. It returns how many were sent in the measured time.
func ping(
	ctx context.Context, conns []*conn, begin time.Time, rec *Recorder, interval time.Duration,
) int {
	sent := 0
	for k := 0; ; k++ {
		at := begin.Add(interval / time.Duration(len(conns)) * time.Duration(k))
		if !at.Before(rec.Until()) {
			at = rec.Until()
		}
		select {
		case <-time.After(time.Until(at)):
		case <-ctx.Done():
			return sent
		}
		if at.Equal(rec.Until()) {
			return sent
		}
		c := conns[k%len(conns)]
		// A connection that has ended shows when its session is closed.
		c.nc.SetWriteDeadline(time.Now().Add(dialTimeout))
		if _, err := c.nc.Write(c.appendPing(nil)); err == nil && !at.Before(rec.from) {
			sent++
		}
	}
}

// Reconnected is how long the clients of a killed server needed to reconnect.
type Reconnected struct {
	Host    string        // that ended
	Clients Latency       // from its end until each had its session again
	All     time.Duration // until the last had
	Expired int           // sessions that no server took back
	CPU     time.Duration // of the other servers meanwhile
}

// Reconnect opens Connections sessions at the leader, kills it, and has them reconnect to the others, half of them
// to each first. kill is KillLeader's. Its clients wait between two attempts as those of Failover do.
func Reconnect(ctx context.Context, cfg Config, kill Killer) (*Reconnected, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	leader, err := findLeader(ctx, cfg.Hosts, cfg.TLS)
	if err != nil {
		return nil, err
	}
	others := append(append([]string(nil), cfg.Hosts[leader+1:]...), cfg.Hosts[:leader]...)
	at := cfg
	at.Hosts = cfg.Hosts[leader : leader+1]
	conns, err := connectAll(ctx, &at, cfg.Connections)
	if err != nil {
		closeSockets(conns)
		return nil, err
	}
	before, begin := readUsage(cfg.PIDs), time.Now()
	r := &Reconnected{}
	if r.Host, err = kill(ctx); err != nil {
		closeSockets(conns)
		return nil, err
	}
	var back Histogram
	var mu sync.Mutex // protects back and r.Expired
	var all sync.WaitGroup
	for i, c := range conns {
		h := &home{hosts: others, at: i % len(others), conn: c, dialer: cfg.dialer()}
		all.Go(func() {
			_, _ = h.conn.read() // which ends
			h.leave()
			if h.comeBack(ctx, func() { mu.Lock(); r.Expired++; mu.Unlock() }) {
				mu.Lock()
				back.Record(time.Since(begin))
				mu.Unlock()
			}
			conns[i] = h.conn
		})
	}
	all.Wait()
	r.All = time.Since(begin)
	for _, p := range readUsage(cfg.PIDs).since(before).servers {
		if !p.Ended {
			r.CPU += p.CPU
		}
	}
	var counts Counts
	back.AddTo(&counts)
	r.Clients = counts.Latency()
	if ctx.Err() != nil {
		return r, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	if lost := closeAll(conns); len(lost) > 0 {
		return r, fmt.Errorf("%d sessions were lost again, one by: %w", len(lost), lost[0])
	}
	return r, nil
}
