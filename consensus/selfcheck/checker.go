// Package selfcheck finds servers of one ensemble whose histories or states differ, though they should not: because
// data directories were put back from old copies, a disk has lost what it had reported as synced, or memory or the
// program is broken.
//
// Record is what a server has applied: points of its history (state.Point) and digests of its state. Answer is what
// it tells another. A Checker notes what is applied, asks the others (checker.go), and judges their answers (judge.go,
// compare.go): a server that a majority contradicts is halted.
//
// The caller starts Run and ComputeDigests, each in a goroutine. The package has one lock, Record.mu, under which it
// calls nothing.
package selfcheck

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/crash"
)

const (
	// saveInterval is how often the history goes to the disk, when it has changed.
	saveInterval = time.Second
	// digestShare bounds what digests cost: between two there is at least so many times what one took.
	digestShare = 100
)

// Kind is the kind of reason for which a server is halted.
type Kind string

// The kinds.
const (
	Removed  Kind = "removed"  // it is no longer a member of the ensemble
	Diverged Kind = "diverged" // its state differs from that of a majority
	Forked   Kind = "forked"   // its log differs from what a majority has committed
)

// Config is what a Checker is made of.
type Config struct {
	Self     state.ServerID
	LastLife uint64        // this server's incarnation before this one, by its disk; 0: none
	Interval time.Duration // between comparisons; 0: there are none
	Store    Store         // of the Record; nil: there is none
	Node     Node
	Logger   *slog.Logger
}

// Store keeps what a server knows of what it has applied. It may be lost.
type Store interface {
	// Load returns what was saved last; nothing if that is not known.
	Load() []byte
	// Save does not wait for the disk.
	Save([]byte) error
}

// Node is the server that is checked.
type Node interface {
	// Halt ends its part in the ensemble, for a reason that says what to do. Only the first call has an effect.
	Halt(kind Kind, reason string)
	// Halted returns kind and reason, with a colon between them; empty: it is not halted.
	Halted() string
	// Incarnation returns its own. Only the goroutine that applies calls it.
	Incarnation() uint64
	// LastIndex returns the index of the last entry in its log.
	LastIndex() uint64
	// Life returns the last incarnation of a server of which this one has applied a command; 0: none.
	Life(id state.ServerID) uint64
	// ProposeDigest has all servers take their digests, at the same entry.
	ProposeDigest()
}

// Ensemble is the ensemble of the server that is checked.
type Ensemble interface {
	// Leads reports whether this server leads.
	Leads() bool
	// Voters returns the servers that vote.
	Voters() map[state.ServerID]bool
	// AskChecks asks the other servers what they have applied, as of indexes of the log, and returns their answers.
	AskChecks(at []uint64) map[state.ServerID]*Answer
}

// Checker compares what this server has applied with what the others have. A server that differs from a majority of
// the voters is halted; where there is no majority, all serve on and report it (alarm).
type Checker struct {
	Record *Record

	cfg      Config
	ensemble Ensemble
	frozen   chan *state.Snapshot // capacity 1: states whose digest will be computed

	// lostLife is one in between, which the others know; 0: none. Then the disk is an old copy.
	lostLife atomic.Uint64
	alarm    atomic.Pointer[string]    // what is wrong with others; nil: nothing
	equal    atomic.Uint64             // the last index at which a majority had this server's state; 0: none
	equalAt  atomic.Pointer[time.Time] // when; nil: never
	took     atomic.Int64              // nanoseconds, of the last digest

	proposed time.Time // when this server, as leader, has proposed the last digest; zero: never; only Run uses it
}

// New returns a Checker with the Record that is in the store.
func New(cfg Config) *Checker {
	c := &Checker{cfg: cfg, Record: &Record{}, frozen: make(chan *state.Snapshot, 1)}
	if cfg.Store == nil {
		return c
	}
	if b := cfg.Store.Load(); len(b) > 0 {
		r, err := Load(b)
		if err != nil { // as after a power cut
			cfg.Logger.Warn("what this server has applied before is not known", "error", err)
			return c
		}
		c.Record = r
	}
	return c
}

// Attach gives the Checker the ensemble that it asks, before CheckStart and Run.
func (c *Checker) Attach(e Ensemble) { c.ensemble = e }

// Applied is called by the goroutine that applies, after each entry; gap: after a snapshot was read.
func (c *Checker) Applied(m *state.Machine, p state.Point, gap bool) {
	if !c.Record.Add(p, gap) {
		have, _ := c.Record.At(p.Index)
		c.cfg.Node.Halt(Forked, fmt.Sprintf("server %d has applied %s before, and its log or snapshot now has %s: its "+
			"files do not belong together, or the others have another history; %s",
			c.cfg.Self, describe(have), describe(p), remedy))
	}
	c.NoteLife(m.Incarnation(c.cfg.Self))
}

// NoteLife notes an incarnation of this server that is in the log.
func (c *Checker) NoteLife(life uint64) {
	if last := c.cfg.LastLife; last != 0 && life > last && life < c.cfg.Node.Incarnation() {
		c.lostLife.Store(life)
	}
}

// Truncated halts this server: a leader wants it to forget what it has applied.
func (c *Checker) Truncated(from, applied uint64) {
	c.cfg.Node.Halt(Forked, fmt.Sprintf("a leader has another history than server %d: it replaces the log "+
		"from entry %d on, "+
		"and this server has applied entries up to %d, which a majority had on its disks; %s",
		c.cfg.Self, from, applied, remedyFork))
}

// Freeze is called by the goroutine that applies, when it has applied an OpDigest.
func (c *Checker) Freeze(m *state.Machine) {
	if len(c.frozen) == 0 { // no one else sends
		c.frozen <- m.Snapshot()
	}
}

// ComputeDigests computes digests until ctx ends.
func (c *Checker) ComputeDigests(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-c.frozen:
			start := time.Now()
			c.Record.AddDigest(Digest{Point: s.Point(), State: s.Digest()})
			s.Release()
			c.took.Store(int64(time.Since(start)))
		}
	}
}

// Run compares until ctx ends, or this server is halted.
func (c *Checker) Run(ctx context.Context) {
	tick := time.NewTicker(saveInterval)
	defer tick.Stop()
	defer c.save()
	defer crash.OnPanic()
	var check <-chan time.Time
	if c.cfg.Interval > 0 {
		t := time.NewTicker(c.cfg.Interval)
		defer t.Stop()
		check = t.C
	}
	for c.cfg.Node.Halted() == "" {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.save()
		case <-check:
			c.propose()
			c.compare()
		}
	}
}

func (c *Checker) save() {
	if c.cfg.Store == nil {
		return
	}
	if b := c.Record.Save(); b != nil {
		if err := c.cfg.Store.Save(b); err != nil {
			c.cfg.Logger.Warn("writing what this server has applied failed", "error", err)
		}
	}
}

// propose has all servers take their digests, if this one leads and something was applied since the last time.
func (c *Checker) propose() {
	last := uint64(0)
	if d := c.Record.Digests(); len(d) > 0 {
		last = d[len(d)-1].Index
	}
	if !c.ensemble.Leads() || c.Record.Newest().Index <= last ||
		!c.proposed.IsZero() && time.Since(c.proposed) < digestShare*time.Duration(c.took.Load()) {
		return
	}
	c.proposed = time.Now()
	c.cfg.Node.ProposeDigest()
}

// Answer is what this server tells another, that asks for indexes of the log.
func (c *Checker) Answer(from state.ServerID, at []uint64) *Answer {
	a := c.Record.Answer(at)
	a.OldCopy = c.lostLife.Load() != 0
	a.Halted = c.cfg.Node.Halted()
	a.Last, a.Life = c.cfg.Node.LastIndex(), c.cfg.Node.Life(from)
	return a
}

// Alarm returns how the servers differ though they should not; empty: as far as is known they do not.
func (c *Checker) Alarm() string {
	if text := c.alarm.Load(); text != nil {
		return *text
	}
	return ""
}

// Metrics lists what the checks have found, by the names in the table of package api/metrics.
func (c *Checker) Metrics(emit func(name string, value any)) {
	age, alarm := -1.0, int64(0)
	if at := c.equalAt.Load(); at != nil {
		age = time.Since(*at).Seconds()
	}
	if c.alarm.Load() != nil {
		alarm = 1
	}
	emit("check_alarm", alarm)
	emit("check_last_index", int64(c.equal.Load()))
	emit("check_age_seconds", age)
	emit("check_digest_seconds", time.Duration(c.took.Load()).Seconds())
}
