package httpload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// Streams measures how long a change takes to many streams: each of Connections follows one and
// the same key, one more changes it, and when the last stream has reported the change the next
// one is made. The operations of the result are those of load.Watch.
func Streams(ctx context.Context, cfg load.Config, api API) (*load.Result, error) {
	cfg.Mix, cfg.Keys = load.Mix{{Op: load.Event, Weight: 1}, {Op: load.LastEvent, Weight: 1}}, 1
	if err := check(&cfg); err != nil {
		return nil, err
	}
	return around(ctx, &cfg, api, func() (*load.Result, error) {
		f := &fanout{cfg: &cfg, api: api, heard: make(chan error, cfg.Connections),
			arrived: make([]time.Time, cfg.Connections)}
		defer f.end()
		if err := f.open(ctx); err != nil {
			return nil, err
		}
		res, err := load.Measure(ctx, &cfg, func(rec *load.Recorder, _ time.Time) []func() error {
			return []func() error{func() error { return f.run(ctx, rec) }}
		})
		res.Kind, res.Config.Mix, res.Total = "streams", nil, load.OpResult{Name: "events"}
		res.Total.PerSecond, res.Total.Latency = res.Ops[0].PerSecond, res.Ops[0].Latency
		return res, err
	})
}

// fanout is one key, the connection that changes it and the streams that follow it.
type fanout struct {
	cfg    *load.Config
	api    API
	conns  []*conn
	wg     sync.WaitGroup
	ending atomic.Bool
	// heard has an item for every event of the round, or the end of a stream.
	// Its capacity is that of a round.
	heard   chan error
	arrived []time.Time // of each stream's event of the round
}

// opensAtOnce bounds the streams that are being opened.
const opensAtOnce = 64

// open opens all streams and has each follow.
func (f *fanout) open(ctx context.Context) error {
	q := f.api.stream(f.cfg.Prefix, 0)
	errs := make([]error, f.cfg.Connections)
	tickets := make(chan struct{}, opensAtOnce)
	var opening sync.WaitGroup
	for i := range errs {
		c := newConn(f.cfg, i)
		f.conns = append(f.conns, c)
		tickets <- struct{}{}
		opening.Go(func() {
			defer func() { <-tickets }()
			var a answer
			if errs[i] = c.send(ctx, &q); errs[i] == nil {
				a, errs[i] = c.head()
			}
			if errs[i] == nil && (a.status != 200 || !a.chunked) {
				errs[i] = fmt.Errorf("a stream begins with status %d, chunked: %t", a.status, a.chunked)
			}
		})
	}
	opening.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("opening the streams: %w", err)
	}
	for i, c := range f.conns {
		c.nc.SetDeadline(time.Time{})
		f.wg.Go(func() { f.follow(i, c) })
	}
	return nil
}

// follow reads a stream until it ends.
func (f *fanout) follow(i int, c *conn) {
	lines := bufio.NewReaderSize(httputil.NewChunkedReader(c.r), readBytes)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			if !f.ending.Load() {
				f.heard <- fmt.Errorf("stream %d: %w", i, err)
			}
			return
		}
		n := len(line) - 1
		for range f.api.changes(line[:n]) {
			f.arrived[i] = time.Now()
			f.heard <- nil
		}
	}
}

// run changes the key, round after round.
func (f *fanout) run(ctx context.Context, rec *load.Recorder) error {
	writer := newConn(f.cfg, 0)
	defer writer.close()
	q := f.api.call(f.cfg.Prefix, load.Call{Op: load.Set, Data: make([]byte, f.cfg.ValueSize)})
	for time.Now().Before(rec.Until()) {
		start := time.Now()
		if _, err := writer.do(ctx, &q); err != nil {
			rec.Dropped()
			return fmt.Errorf("changing the key: %w", err)
		}
		if err := f.round(ctx); err != nil {
			rec.Dropped()
			return err
		}
		last := start
		for i, at := range f.arrived {
			rec.Answer(i, load.Event, start, at)
			if at.After(last) {
				last = at
			}
		}
		rec.Answer(0, load.LastEvent, start, last)
	}
	return nil
}

// round waits for the event of each stream.
func (f *fanout) round(ctx context.Context) error {
	limit := time.NewTimer(answerTime)
	defer limit.Stop()
	for n := range f.conns {
		select {
		case err := <-f.heard:
			if err != nil {
				return err
			}
		case <-limit.C:
			return fmt.Errorf("%d of %d streams have told nothing for %v: %w", len(f.conns)-n, len(f.conns),
				answerTime, io.ErrNoProgress)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// end closes the streams and waits for their goroutines. Their last events have room: there is
// at most one event under way for each.
func (f *fanout) end() {
	f.ending.Store(true)
	for _, c := range f.conns {
		c.close()
	}
	go func() {
		f.wg.Wait()
		close(f.heard)
	}()
	for err := range f.heard {
		_ = err // the round that would have looked at it is over
	}
}
