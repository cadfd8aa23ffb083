// Package mirror follows a ZooKeeper ensemble, the origin, into our log.
//
// A Mirror runs on every server. It acts while its server leads and the state says that the ensemble mirrors: it
// connects to the origin as an observer (package learner) from the place that the state has reached, brings a snapshot
// into the log in parts, and then every transaction, in order and in batches. The state machines apply them, compare
// the digests and keep the place (consensus/state, OpMirror), so the next leader continues where the last one stopped.
// What is proposed carries the leader's term and counts in that term alone: a deposed leader changes nothing.
//
// The package decides when to connect, when to begin again with a snapshot, and when to stop and ask the operator. It
// does not apply transactions, and knows neither the protocol nor its TLS.
//
// Run's goroutine connects, and package learner calls the Handler on it. Each connection has two more: send proposes
// what has come, and watch looks whether this server still leads. Mirror.mu guards what is reported of the connection,
// feed.mu what waits to be proposed; neither is held while another lock is taken.
package mirror

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/migration/learner"
	"github.com/zk-lite/zk-lite/migration/seed"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// lookEvery is how often a Mirror looks whether it has to act, and whether its server still leads.
	lookEvery = 100 * time.Millisecond
	// firstRetry and longestRetry are the pauses after connections that failed: an election takes a second or so, and
	// an ensemble that is down should not be asked all the time.
	firstRetry, longestRetry = 200 * time.Millisecond, 10 * time.Second
)

// Log is what a Mirror needs of its server.
type Log interface {
	State
	// Leads returns the term in which this server leads, 0 if it does not.
	Leads() (term uint64)
	Propose(c *state.Command, w forward.Waiter) error
	Do(ctx context.Context, c *state.Command) (state.Result, error)
}

// State is the state as it is applied at this server.
type State interface {
	// Mirror returns what is mirrored; false if nothing is.
	Mirror() (state.Mirror, bool)
	Held() Held
	// Ensemble is the id of our ensemble.
	Ensemble() [16]byte
	Room(key string) (free, used int64)
	// Relays is state.Machine.Relays.
	Relays(term, after uint64, visit func(number uint64, c *state.Command) bool)
	// Timeout returns the timeout of a session; false if there is none.
	Timeout(id znode.SessionID) (timeout time.Duration, ok bool)
}

// Held is what a state holds.
type Held struct {
	Term     uint64 // of the present leader, as this server knows it; not of the state
	Zxid     znode.Zxid
	Digest   uint64 // ZooKeeper's, of the znodes
	Znodes   int
	Sessions int
}

// Learner is what a Mirror needs of *learner.Learner.
type Learner interface {
	Follow(ctx context.Context, from learner.Position, h learner.Handler) error
	Status() learner.Status
	Request(session znode.SessionID, cxid, op int32, record []byte, ids []znode.ID) error
	Revalidate(session znode.SessionID, timeout int32) error
	Sync(session znode.SessionID, cxid int32, path string) error
	Touch(session znode.SessionID, timeout int32) error
}

// Config configures a Mirror.
type Config struct {
	// From are peer addresses of an origin that an empty ensemble mirrors without being asked.
	From []string
	// Learner returns one that takes the origin's servers to have these peer addresses, and id as its own.
	Learner func(origin []string, id int64) Learner
	Limits  seed.Limits // of this server, with which a snapshot is compared
	Logger  *slog.Logger
}

// Mirror follows an origin while its server leads.
type Mirror struct {
	cfg      Config
	log      Log
	failures repeats.Filter
	carrier  atomic.Pointer[carrier] // of the present connection; nil: there is none

	// Run's, and watch's.
	sent    bool  // relays may have been, since lose
	again   bool  // begin with a snapshot, because the place is lost
	listed  int64 // how many ids the origin's configuration had
	epoch   int64 // the highest of a leader of the origin
	digests differing
	noticed bool // that Config.From has no effect

	mu   sync.Mutex
	here here
}

// New returns a Mirror that does nothing before Run.
func New(log Log, cfg Config) *Mirror { return &Mirror{cfg: cfg, log: log} }

// Run acts until ctx ends.
func (m *Mirror) Run(ctx context.Context) {
	pause := firstRetry
	for wait(ctx, lookEvery) {
		term := m.log.Leads()
		now, on := m.log.Mirror()
		switch {
		case term == 0:
			m.rest()
			continue
		case !on:
			m.rest()
			m.beginBySetting(ctx)
			continue
		case now.Fault != "":
			m.rest()
			continue
		}
		begun := time.Now()
		err := m.follow(ctx, term)
		if time.Since(begun) > longestRetry {
			pause = firstRetry
		}
		if m.ended(ctx, err, now.Begun) {
			wait(ctx, pause)
			pause = min(2*pause, longestRetry)
		}
	}
}

// wait waits for d, and reports false if ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// The reasons for the end of a connection that are no failures.
var (
	errDeposed = errors.New("this server no longer leads")
	errEnded   = errors.New("the mirror was ended or begun again, or has a fault")
)

// follow follows the origin in one connection, and returns why that has ended.
func (m *Mirror) follow(ctx context.Context, term uint64) error {
	// The state may lack entries of earlier leaders, and batches of this server's last connection.
	if _, err := m.log.Do(ctx, &state.Command{Op: state.OpSync}); err != nil {
		return err
	}
	now, on := m.log.Mirror()
	if !on || now.Fault != "" {
		return errEnded
	}
	if now.Term != term || m.sent {
		if err := m.lose(ctx, term); err != nil {
			return err
		}
	}
	var from learner.Position
	if now.Loaded && !m.again {
		from = learner.Position{Zxid: now.Zxid, Epoch: max(m.epoch, int64(now.Zxid)>>32)}
	}
	l := m.cfg.Learner(strings.Split(now.Source, ","), m.id())
	m.connecting(l)
	parent := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	f := newFeed(ctx, cancel, m, term, l)
	m.carrier.Store(f.carrier)
	defer m.carrier.Store(nil)
	var others sync.WaitGroup
	others.Go(f.send)
	others.Go(f.carrier.carry)
	others.Go(func() { m.watch(ctx, cancel, term, now.Begun) })
	err := l.Follow(ctx, from, f)
	if cause := context.Cause(ctx); cause != nil {
		err = cause // that of send or watch, which have ended the connection
	}
	cancel(err)
	others.Wait()
	if m.sent && m.log.Leads() == term { // clients that wait need not wait for the next connection
		_ = m.lose(parent, term) // the next one tries again
	}
	return err
}

// id is the observer's id, which ZooKeeper does not check: two mirrors with the same one would do no harm, but be hard
// to tell apart. So it follows from the id of our ensemble, which is random. It is far above the ids that a
// configuration can have.
func (m *Mirror) id() int64 {
	ensemble := m.log.Ensemble()
	const high = 1 << 62
	return int64(binary.BigEndian.Uint64(ensemble[:])%high|high) + m.listed
}

// watch ends a connection when this server no longer leads, when the operator has ended the mirror or begun it again,
// when a former leader has reported a fault, or when digests go on differing.
func (m *Mirror) watch(ctx context.Context, cancel context.CancelCauseFunc, term, begun uint64) {
	for wait(ctx, lookEvery) {
		now, on := m.log.Mirror()
		switch {
		case m.log.Leads() != term:
			cancel(errDeposed)
		case !on || now.Begun != begun || now.Fault != "":
			cancel(errEnded)
		case m.digests.stay(&now, time.Now()):
			cancel(fmt.Errorf("%w: since zxid %v no digest has fitted, for %v; %d of %d have differed, first that of "+
				"%v", ErrDiffers, now.DiffersSince, patience, now.Differing, now.Compared, now.FirstDiffering))
		}
	}
}

// ended notes how a connection of the mirror that was begun so often has ended, and reports whether to pause before the
// next one.
func (m *Mirror) ended(ctx context.Context, err error, begun uint64) (pause bool) {
	log := m.cfg.Logger
	now, _ := m.log.Mirror()
	if errors.Is(err, ErrUnreadable) && now.LostAt != 0 {
		err = fmt.Errorf("%w: zxid %v", errLost, now.LostAt)
	}
	var truncated *learner.TruncatedError
	switch {
	case errors.Is(err, errDeposed), errors.Is(err, errEnded), errors.Is(err, context.Canceled):
		m.rest()
		return false
	case errors.As(err, &truncated), errors.Is(err, ErrDiffers), errors.Is(err, ErrNoRoom),
		errors.Is(err, ErrUnreadable):
		log.Error("the mirror of ZooKeeper has stopped, and waits for zk-lite mirror --restart", "error", err,
			"zxid", now.Zxid)
		m.failed(err)
		m.report(ctx, begun, err)
		return false
	case errors.Is(err, learner.ErrGap), errors.Is(err, learner.ErrFar), errors.Is(err, errLost):
		m.again = true
		log.Warn("the mirror of ZooKeeper has lost its place, and begins again with a snapshot", "error", err,
			"zxid", now.Zxid)
	case errors.Is(err, learner.ErrListed):
		m.listed++
	default:
		if pass, leftOut := m.failures.Pass("connection"); pass {
			log.Warn("the mirror of ZooKeeper is not connected, and tries again", "error", err, "left_out", leftOut)
		}
	}
	m.failed(err)
	return true
}

// report brings a fault into the log, so that no server follows until the operator has decided, this one or a later
// leader. The origin may hide later what it has shown now: a leader that has lost transactions sends a snapshot then.
func (m *Mirror) report(ctx context.Context, begun uint64, fault error) {
	c := &state.Command{Op: state.OpMirror, Mirror: state.MirrorFault}
	c.Data = state.AppendFault(nil, begun, fault.Error())
	for {
		if _, err := m.log.Do(ctx, c); err == nil { // also if the mirror was ended or begun again
			return
		}
		if !wait(ctx, lookEvery) {
			return
		}
	}
}

// patience is how long digests may differ: longer than any queue of a leader that is spoilt by writes of the root.
const patience = time.Minute

// differing notes since when digests differ. ZooKeeper's leaders send wrong ones for a while after writes of the root
// that overlap with others, so only what stays is a fault.
type differing struct {
	since znode.Zxid // the first of them; 0: the last digest fitted
	at    time.Time  // when that was seen
	count uint64     // how many had differed then
}

// stay reports whether no digest has fitted for patience, and others than the first were compared.
func (d *differing) stay(now *state.Mirror, at time.Time) bool {
	if now.DiffersSince != d.since {
		*d = differing{now.DiffersSince, at, now.Differing}
	}
	return d.since != 0 && at.Sub(d.at) >= patience && now.Differing > d.count
}
