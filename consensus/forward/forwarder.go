package forward

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/crash"
	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/znode"
)

// Times of a stream.
const (
	streamWriteTimeout = 5 * time.Second // a leader that takes no frameStep for so long has failed
	redialMin          = 2 * time.Millisecond
	redialMax          = 100 * time.Millisecond
)

// Config is what a Forwarder is made of.
type Config struct {
	Self            state.ServerID
	ElectionTimeout time.Duration
	Logger          *slog.Logger
	Queue           *Queue
	Streams         *Streams
	Leadership      *leadership.Publisher
	Ensemble        Ensemble
	Network         Network
	TreeLimit       int64           // how much memory, in bytes, the tree may take on this server; 0: no limit
	Tasks           *sync.WaitGroup // of the goroutines that Close of the node waits for

	// Touched takes, on the leader, the sessions that a server has reported.
	Touched func(by state.ServerID, ids []znode.SessionID)
}

// Ensemble is what a Forwarder asks of the ensemble (membership.Ensemble).
type Ensemble interface {
	// Leads reports whether this server leads at this very moment. What is published may be a moment
	// old, and a contact that is confirmed after leadership was lost would let the other server serve
	// reads from an old state for longer than it promises.
	Leads() bool
	// Voters returns the servers that vote.
	Voters() map[state.ServerID]bool
}

// Network connects servers.
type Network interface {
	// Dial opens a stream to a server.
	Dial(ctx context.Context, to state.ServerID) (net.Conn, error)
	// Accept returns the next stream that another server has opened. It fails when there will be none.
	Accept() (net.Conn, state.ServerID, error)
}

// Forwarder carries the commands in the queue, and touched sessions, to the leader, and takes those of the
// other servers while this one leads.
type Forwarder struct {
	cfg     Config
	queue   *Queue
	start   time.Time
	touches touches
	contact atomic.Int64 // now() when a leader was last known to lead; 0: never
	batcher atomic.Pointer[Batcher]
	limit   atomic.Int64 // the smallest TreeLimit of the voters, as the leader last said; 0: none
	repeats repeats.Filter

	Stats Stats // of this server's leadership
}

// New returns a Forwarder that does nothing before Run and Accept.
func New(cfg Config) *Forwarder {
	return &Forwarder{cfg: cfg, queue: cfg.Queue, start: time.Now(), touches: newTouches()}
}

// SetBatcher has this server's commands, and those of all streams that are accepted from now on, go to b;
// nil: this server does not lead. It ends the batcher before.
func (f *Forwarder) SetBatcher(b *Batcher) {
	if old := f.batcher.Swap(b); old != nil {
		old.End()
	}
}

// now is a monotonic clock in nanoseconds, never 0.
func (f *Forwarder) now() int64 { return int64(time.Since(f.start)) + 1 }

// Contact returns how long ago a leader was last known to lead, if ever.
func (f *Forwarder) Contact() (ago time.Duration, ever bool) {
	at := f.contact.Load()
	return time.Duration(f.now() - at), at > 0
}

// TreeLimit returns how much memory, in bytes, the tree may take on every voter and on this server; 0: no limit.
func (f *Forwarder) TreeLimit() int64 { return smaller(f.cfg.TreeLimit, f.limit.Load()) }

// ensembleLimit is the smallest limit of the voters that this leader knows.
func (f *Forwarder) ensembleLimit() int64 {
	return smaller(f.cfg.TreeLimit, f.cfg.Streams.limit(f.cfg.Ensemble.Voters()))
}

// Touch reports sessions whose clients were heard by this server. It never
// blocks: while no leader takes them they are merged.
func (f *Forwarder) Touch(ids []znode.SessionID) { f.touches.add(ids) }

// Run keeps this server's commands flowing to the leader, whichever server that is,
// until ctx ends.
func (f *Forwarder) Run(ctx context.Context) {
	backoff := redialMin
	for ctx.Err() == nil {
		now, changed := f.cfg.Leadership.Watch()
		var worked bool
		switch now.Leader {
		case state.NoServer:
		case f.cfg.Self:
			worked = f.forwardToSelf()
		default:
			worked = f.forwardToLeader(ctx, now.Leader, changed)
		}
		if worked {
			backoff = redialMin
		} else {
			backoff = min(2*backoff, redialMax)
		}
		select {
		case <-ctx.Done():
		case <-changed:
			backoff = redialMin
		case <-time.After(backoff):
		}
	}
}

// forwardToSelf feeds this server's own batcher. It reports whether there was one.
func (f *Forwarder) forwardToSelf() bool {
	b := f.batcher.Load()
	if b == nil || b.ctx.Err() != nil {
		return false
	}
	f.queue.Rewind()
	for {
		select {
		case <-b.ctx.Done():
			return true
		case ids := <-f.touches:
			f.cfg.Touched(f.cfg.Self, ids)
			f.limit.Store(f.ensembleLimit())
			if f.cfg.Ensemble.Leads() {
				// A leader that hands over has been in touch until now.
				f.contact.Store(f.now())
				f.cfg.Leadership.NoteContact(f.cfg.Self)
			}
		case <-f.queue.wake: // one batch at a time, or touches would wait for all
			yield()
			if x := f.queue.take(nil); x.Count > 0 && !b.submit(x) {
				return true
			}
		}
	}
}

// forwardToLeader keeps a stream to the leader. It reports whether that worked
// for a while.
func (f *Forwarder) forwardToLeader(
	parent context.Context, leader state.ServerID, changed <-chan struct{},
) bool {
	asked := f.now()
	ctx, cancel := context.WithTimeout(parent, f.cfg.ElectionTimeout)
	conn, err := f.cfg.Network.Dial(ctx, leader)
	cancel()
	if err != nil {
		f.cfg.Logger.Debug("cannot reach the leader", "leader", leader, "error", err)
		return false
	}
	defer conn.Close()
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	accepted := make(chan struct{})
	f.cfg.Tasks.Go(func() { end(f.readContacts(conn, leader, asked, accepted)) })
	if writeFrame(conn, appendOpen(nil, f.queue.Origin().Incarnation, f.cfg.TreeLimit)) != nil {
		return false
	}
	select {
	case <-accepted:
	case <-ctx.Done():
		return false // it does not lead, or not yet
	case <-changed:
		return false // one that was cut off would never answer
	}
	f.queue.Rewind()
	err = f.sendStream(ctx, conn, leader, changed)
	if err != nil && parent.Err() == nil {
		const ended = "the stream to the leader has ended"
		if pass, leftOut := f.repeats.Pass(ended); pass {
			f.cfg.Logger.Info(ended, "leader", leader, "error", err, "left_out", leftOut)
		}
	}
	return true
}

// sendStream writes commands and touches until the stream, and then the error says why, or the leadership ends.
func (f *Forwarder) sendStream(
	ctx context.Context, conn net.Conn, leader state.ServerID, changed <-chan struct{},
) error {
	var buf []byte
	sent := reports{}
	defer func() { f.Touch(sent.unconfirmed(f.contact.Load())) }()
	defer crash.OnPanic()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
			var now leadership.State
			if now, changed = f.cfg.Leadership.Watch(); now.Leader != leader {
				return nil
			}
		case ids := <-f.touches:
			if len(ids) > maxTouched {
				f.Touch(ids[maxTouched:])
				ids = ids[:maxTouched]
			}
			stamp := f.now()
			sent.add(ids, stamp, f.contact.Load())
			if err := writeFrame(conn, appendTouch(buf[:0], uint64(stamp), ids)); err != nil {
				return err
			}
		case <-f.queue.wake: // one batch at a time, or touches would wait for all
			yield()
			x := f.queue.take(appendBatchHeader(buf[:0]))
			buf = x.Commands
			if x.Count == 0 {
				continue
			}
			if err := writeFrame(conn, finishBatch(buf, &x)); err != nil {
				return fmt.Errorf("sending %d commands of %d bytes: %w", x.Count, len(x.Commands), err)
			}
		}
	}
}

// yield lets other goroutines run before a batch is taken, so that they can add their commands to it. Go
// runs the goroutine that was woken last first: of twenty clients whose requests have come together, the
// first one's command would be sent alone, and so would each that follows (ADR 0014). It waits for no one.
func yield() { runtime.Gosched() }

// writeFrame writes a frame to a server that takes some of it now and then, however long it is.
func writeFrame(conn net.Conn, frame []byte) error {
	for step := range slices.Chunk(frame, frameStep) {
		if err := conn.SetWriteDeadline(time.Now().Add(streamWriteTimeout)); err != nil {
			return err
		}
		if _, err := conn.Write(step); err != nil {
			return err
		}
	}
	return nil
}

// readContacts reads what the leader sends: that it leads, and which of our touches it has got. The first
// contact counts as of asked, before the dial: it may have been under way for long, and others may lead since.
// It returns why the stream has ended.
func (f *Forwarder) readContacts(conn net.Conn, leader state.ServerID, asked int64, accepted chan struct{}) error {
	in := bufio.NewReader(conn)
	for first := true; ; first = false {
		kind, body, err := readFrame(in)
		if err == nil && kind != frameContact {
			err = fmt.Errorf("%w: frame of type %d", errMalformed, kind)
		}
		if err != nil {
			return err
		}
		stamp, limit, err := parseContact(body)
		if err != nil {
			return err
		}
		f.limit.Store(limit)
		f.cfg.Leadership.NoteContact(leader)
		if first {
			f.contact.Store(asked)
			close(accepted)
		} else if stamp > f.contact.Load() {
			f.contact.Store(stamp)
		}
	}
}

// touches holds the touched sessions until a stream takes them.
type touches chan []znode.SessionID // capacity 1

func newTouches() touches { return make(touches, 1) }

func (t touches) add(ids []znode.SessionID) {
	for {
		select {
		case t <- ids:
			return
		case older := <-t:
			seen := make(map[znode.SessionID]bool, len(ids))
			for _, id := range ids {
				seen[id] = true
			}
			for _, id := range older {
				if !seen[id] {
					ids = append(ids, id)
				}
			}
		}
	}
}

// reports holds the touched sessions that a stream has sent to the leader and the leader has not
// confirmed: each with the stamp of the newest report. When the stream breaks they are sent again, or the
// sessions would expire early.
type reports map[znode.SessionID]int64

// add notes a report that is about to be sent, and drops what the leader has
// confirmed by now: it answers the reports in their order.
func (r reports) add(ids []znode.SessionID, stamp, confirmed int64) {
	r.drop(confirmed)
	for _, id := range ids {
		r[id] = stamp
	}
}

// unconfirmed returns the sessions whose touches the leader may not have.
func (r reports) unconfirmed(confirmed int64) []znode.SessionID {
	r.drop(confirmed)
	return slices.Collect(maps.Keys(r))
}

func (r reports) drop(confirmed int64) {
	maps.DeleteFunc(r, func(_ znode.SessionID, stamp int64) bool { return stamp <= confirmed })
}
