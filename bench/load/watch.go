package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// Watch measures how long an event takes to its watchers: each of Connections
// sessions leaves a data watch on one and the same znode, one more session
// changes it, and when the last watcher has its event the next round begins.
// The operations of the result are "event", the time from sending the change
// to the arrival of each event, and "last event", to that of the last one of
// each round. Rounds last as long as the load.
func Watch(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	keys := newKeySpace(cfg.Prefix, 1)
	cfg.Keys, cfg.Mix = 1, Mix{{Event, 1}, {LastEvent, 1}}
	data := value(cfg.Seed, cfg.ValueSize)
	if err := asAdmin(ctx, &cfg, func(c *conn) error { return keys.build(ctx, c, data) }); err != nil {
		return nil, err
	}
	res, err := watchRounds(ctx, &cfg, keys.paths[0], data)
	return res, errors.Join(err, cleanUp(ctx, &cfg, keys))
}

func watchRounds(ctx context.Context, cfg *Config, path string, data []byte) (*Result, error) {
	conns, err := connectAll(ctx, cfg, cfg.Connections+1)
	defer closeAll(conns)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { closeSockets(conns) })()
	res, err := Measure(ctx, cfg, func(rec *Recorder, _ time.Time) []func() error {
		f := &fanout{writer: conns[0], watchers: conns[1:], path: path, data: data, rec: rec}
		return []func() error{f.run}
	})
	if res != nil {
		res.Kind, res.Total = "watch", OpResult{Name: "events"}
		res.Config.Mix = nil // not one that could be asked for
		if len(res.Ops) > 0 {
			res.Total.PerSecond, res.Total.Latency = res.Ops[0].PerSecond, res.Ops[0].Latency
		}
	}
	return res, err
}

// fanout is one znode, the client that changes it and those that watch it.
type fanout struct {
	writer   *conn
	watchers []*conn
	path     string
	data     []byte
	rec      *Recorder
}

func (f *fanout) run() error {
	for time.Now().Before(f.rec.Until()) {
		if err := f.round(); err != nil {
			f.rec.Dropped()
			return err
		}
	}
	return nil
}

// round arms all watches, changes the znode and waits for the last event.
func (f *fanout) round() error {
	var armed, told sync.WaitGroup
	errs := make([]error, len(f.watchers))
	arrived := make([]time.Time, len(f.watchers))
	armed.Add(len(f.watchers))
	for i, c := range f.watchers {
		told.Go(func() {
			c.nc.SetReadDeadline(time.Now().Add(drainTimeout))
			_, errs[i] = c.do(wire.OpGetData, &wire.GetDataRequest{Path: f.path, Watch: true})
			armed.Done()
			if errs[i] == nil {
				arrived[i], errs[i] = c.notification()
			}
		})
	}
	armed.Wait()
	start := time.Now()
	_, err := f.writer.do(wire.OpSetData,
		&wire.SetDataRequest{Path: f.path, Data: f.data, Version: znode.AnyVersion})
	told.Wait()
	if err = errors.Join(err, errors.Join(errs...)); err != nil {
		return fmt.Errorf("a round of watches: %w", err)
	}
	last := start
	for i, at := range arrived {
		f.rec.Answer(i, Event, start, at)
		if at.After(last) {
			last = at
		}
	}
	f.rec.Answer(0, LastEvent, start, last)
	return nil
}

// notification waits for one and returns when it arrived.
func (c *conn) notification() (time.Time, error) {
	a, err := c.read()
	now := time.Now()
	if err == nil && a.Xid != wire.XidNotification {
		err = fmt.Errorf("a reply to xid %s where an event was due", a.Xid)
	}
	return now, err
}

// armChunk bounds the paths of one setWatches, in bytes, as ZooKeeper's own clients do.
const armChunk = 128 << 10

// Armed are sessions with watches for events that never happen, kept alive until Close.
type Armed struct {
	conns []*conn
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// Arm leaves n exist watches, each on a path of its own below Prefix that is not there, spread
// over Connections sessions, which are kept alive until Close. They are set with setWatches,
// many in one request, as by a client that reconnects.
func Arm(ctx context.Context, cfg Config, n int) (*Armed, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	conns, err := connectAll(ctx, &cfg, cfg.Connections)
	a := &Armed{conns: conns}
	errs := make([]error, len(conns))
	for i, c := range conns {
		a.wg.Go(func() { errs[i] = arm(c, cfg.Prefix, i, n, len(conns)) })
	}
	a.wg.Wait()
	if err = errors.Join(err, errors.Join(errs...)); err != nil {
		closeAll(conns)
		return nil, fmt.Errorf("leaving watches: %w", err)
	}
	ctx, a.stop = context.WithCancel(ctx)
	a.wg.Go(func() { a.keep(ctx, cfg.SessionTimeout/pingsATimeout) })
	return a, nil
}

// arm leaves the watches number first, first+step and so on, below n.
func arm(c *conn, prefix string, first, n, step int) error {
	c.patience = adminTimeout
	defer func() { c.patience = 0 }()
	var request wire.SetWatchesRequest
	size := 0
	flush := func() error {
		// Earlier changes do not matter: there are no znodes.
		request.RelativeZxid = c.session.zxid
		_, err := c.do(wire.OpSetWatches, &request)
		request.ExistWatches, size = request.ExistWatches[:0], 0
		return err
	}
	for i := first; i < n; i += step {
		path := prefix + "/nothing" + strconv.Itoa(i)
		request.ExistWatches = append(request.ExistWatches, path)
		if size += len(path) + wire.FrameLengthBytes; size < armChunk {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return flush()
}

// keep sends a ping on every session within every interval, evenly spread. The answers gather in the
// sockets' buffers: 20 bytes each.
func (a *Armed) keep(ctx context.Context, interval time.Duration) {
	begin, sent := time.Now(), 0
	tick := time.NewTicker(max(interval/time.Duration(len(a.conns)), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// A late tick, or one for several sessions, sends all that is due.
			for due := int(time.Since(begin) * time.Duration(len(a.conns)) / interval); sent < due; sent++ {
				c := a.conns[sent%len(a.conns)]
				c.nc.SetWriteDeadline(time.Now().Add(dialTimeout))
				_, _ = c.nc.Write(c.appendPing(nil)) // one that has ended shows in Close
			}
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the sessions, and their watches with them. It returns an error if a session had
// ended before.
func (a *Armed) Close() error {
	a.stop()
	a.wg.Wait()
	return errors.Join(closeAll(a.conns)...)
}
