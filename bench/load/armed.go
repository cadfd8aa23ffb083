package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
)

// armChunk bounds the paths of one setWatches, in bytes: what ZooKeeper's own clients
// send at most.
const armChunk = 128 << 10

// Armed are watches that wait for what never comes.
type Armed struct {
	conns []*conn
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// Arm leaves n exist watches, each on a path of its own below Prefix that is not
// there, spread over Connections sessions, which are kept alive until Close. They are
// left with setWatches, as a client does that comes back, many in one request.
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
		// Nothing that came before matters: there is nothing there.
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

// keep sends a ping on every session at every interval. The answers gather in the
// sockets' buffers: 20 bytes each.
func (a *Armed) keep(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, c := range a.conns {
				c.nc.SetWriteDeadline(time.Now().Add(dialTimeout))
				_, _ = c.nc.Write(c.appendPing(nil)) // one that has ended shows in Close
			}
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the sessions, and their watches with them. The error says that a session
// had ended before.
func (a *Armed) Close() error {
	a.stop()
	a.wg.Wait()
	return errors.Join(closeAll(a.conns)...)
}
