package httpload

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

const (
	feedBytes = 64 << 10 // the buffer of a follower, and the longest transaction that it reads
	// ackSlots is how many transactions may be acknowledged before a follower has the first of them: at 50,000 a second
	// those of 40 seconds.
	ackSlots = 1 << 21
)

// Feeds follow zk-lite's change feed, and measure how long after its acknowledgement a change arrives. Acknowledged and
// Measured are for the load.Config of the load that makes the changes.
type Feeds struct {
	stop    context.CancelFunc
	wg      sync.WaitGroup
	opened  time.Time
	acks    []ack
	lag     load.Histogram
	changes atomic.Uint64
	late    atomic.Uint64

	begin, end feedCounts // at the beginning and the end of the measured time
}

// ack is when a transaction was acknowledged, in nanoseconds since the feeds were opened.
type ack struct{ zxid, at atomic.Int64 }

type feedCounts struct {
	lag           load.Counts
	changes, late uint64
}

// Followed is what followers got in the measured time.
type Followed struct {
	Lag     load.Latency // from acknowledgement to arrival; 0 if the change came first
	Changes uint64
	Late    uint64 // times that a follower was so late that the server had forgotten its place
}

// Follow opens a stream for each path, at cfg.Hosts in turn. Close the Feeds.
func Follow(ctx context.Context, cfg *load.Config, paths []string) (*Feeds, error) {
	ctx, stop := context.WithCancel(ctx)
	f := &Feeds{stop: stop, opened: time.Now(), acks: make([]ack, ackSlots)}
	for i, path := range paths {
		c := newConn(cfg, i)
		if err := openFeed(ctx, c, path); err != nil {
			f.Close()
			return nil, fmt.Errorf("opening feed %d: %w", i, err)
		}
		f.wg.Go(func() { f.follow(ctx, c, path) })
	}
	return f, nil
}

// openFeed begins a stream with the changes that are to come.
func openFeed(ctx context.Context, c *conn, path string) error {
	q := request{method: http.MethodGet, target: "/v1/feed" + path, header: "Accept: text/event-stream\r\n"}
	if err := c.send(ctx, &q); err != nil {
		return err
	}
	a, err := c.head()
	if err == nil && (a.status != http.StatusOK || !a.chunked) {
		err = fmt.Errorf("a stream begins with status %d, chunked: %t", a.status, a.chunked)
	}
	if err == nil {
		err = c.nc.SetDeadline(time.Time{})
	}
	return err
}

// Acknowledged notes that a change was acknowledged.
func (f *Feeds) Acknowledged(zxid int64, at time.Time) {
	a := &f.acks[zxid%ackSlots]
	a.at.Store(int64(at.Sub(f.opened)))
	a.zxid.Store(zxid)
}

// Measured begins and ends the measured time.
func (f *Feeds) Measured(begun bool) {
	c := &f.end
	if begun {
		c = &f.begin
	}
	f.lag.AddTo(&c.lag)
	c.changes, c.late = f.changes.Load(), f.late.Load()
}

// Result is what was measured, when the measured time is over.
func (f *Feeds) Result() Followed {
	return Followed{
		Lag: f.end.lag.Since(&f.begin.lag).Latency(), Changes: f.end.changes - f.begin.changes,
		Late: f.end.late - f.begin.late,
	}
}

// Close ends all streams.
func (f *Feeds) Close() {
	f.stop()
	f.wg.Wait()
}

// follow reads a stream, and opens another one from then on when it ends, as it does for a follower that is too late.
func (f *Feeds) follow(ctx context.Context, c *conn, path string) {
	defer c.close()
	for f.read(ctx, c); ctx.Err() == nil; f.read(ctx, c) {
		f.late.Add(1)
		c.close()
		if err := openFeed(ctx, c, path); err != nil {
			return
		}
	}
}

// read reads events until the stream or ctx ends.
func (f *Feeds) read(ctx context.Context, c *conn) {
	nc := c.nc
	defer context.AfterFunc(ctx, func() { nc.SetDeadline(time.Now()) })()
	lines := bufio.NewReaderSize(httputil.NewChunkedReader(c.r), feedBytes)
	var zxid int64
	var now time.Time
	for {
		waits := lines.Buffered() == 0
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // data
		}
		if err != nil {
			return
		}
		if waits {
			now = time.Now()
		}
		if id, ok := bytes.CutPrefix(line, []byte("id: 0x")); ok {
			zxid, _ = strconv.ParseInt(string(bytes.TrimRight(id, "\n")), 16, 64)
		} else if bytes.Equal(line, []byte("event: transaction\n")) {
			f.arrived(zxid, now)
		}
	}
}

func (f *Feeds) arrived(zxid int64, now time.Time) {
	f.changes.Add(1)
	a := &f.acks[zxid%ackSlots]
	switch have := a.zxid.Load(); {
	case have == zxid:
		f.lag.Record(now.Sub(f.opened) - time.Duration(a.at.Load()))
	case have < zxid:
		f.lag.Record(0) // it is not acknowledged yet
	}
}
