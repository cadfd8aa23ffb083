package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/internal/repeats"
)

const (
	// HangLimit is how long a write may take before a leader's peer connections are cut, so
	// that the others elect: raft's heartbeats continue while its main loop waits for the disk.
	HangLimit = 5 * time.Second
	// retryInterval is the pause between two attempts to write term or vote to a full disk,
	// where raft would panic on the first error, or the log of a lone server.
	retryInterval = 100 * time.Millisecond
	// lookInterval is how often WatchFiles looks.
	lookInterval = time.Second
	// campaignPause is for how many election timeouts a server does not campaign after its log has
	// refused a write. Without it a leader that steps down for that reason campaigns at once, its log
	// as long as any other's, wins as often as not, and steps down again: up to seven seconds without
	// a leader were seen. It is bounded, because the others may need this server's log, and it learns
	// that there is room again only by writing.
	campaignPause = 5
)

// MonitorConfig configures a Monitor.
type MonitorConfig struct {
	Self            raft.ServerID
	Store           *Store
	ElectionTimeout time.Duration
	Logger          *slog.Logger
	Stopping        context.Context // done when the server is closed
	// Applied records the applied entries, also before a restart; nil: not known.
	Applied *selfcheck.Record

	Fatal func(error)
	// Forked is called when raft wants to delete an entry that was applied.
	Forked func(from, applied uint64)
}

// Monitor wraps raft's stores. It measures for how long raft waits for them, and remembers the errors
// that they returned.
type Monitor struct {
	cfg   MonitorConfig
	start time.Time
	raft  atomic.Pointer[raft.Raft] // nil: it does not run
	busy  atomic.Int64              // now() when raft's main loop began to wait; 0: it does not
	// refused is now() when the log last refused a write, and refusing when it began to; 0: it
	// has taken one since.
	refused, refusing atomic.Int64
	terms             atomic.Pointer[termStore] // nil: raft has not been started

	logFault, stableFault fault
	lost                  atomic.Pointer[string] // why the server's files are lost; nil: they are not
	repeats               repeats.Filter
}

// NewMonitor returns the monitor of a store.
func NewMonitor(cfg MonitorConfig) *Monitor { return &Monitor{cfg: cfg, start: time.Now()} }

// Log returns raft's log store, its writes watched.
func (m *Monitor) Log() raft.LogStore { return &watchedLog{m.cfg.Store.Log, m} }

// Stable returns raft's store of term and vote.
func (m *Monitor) Stable() (raft.StableStore, error) {
	s, err := openTerms(m.cfg.Store.Stable, m)
	if err != nil {
		return nil, err
	}
	m.terms.Store(s)
	return s, nil
}

// PersistTerm returns when the disk has raft's term and vote as they were at the call. It must come before
// anything that follows from them leaves this server. While the disk is full it waits; if the disk
// fails, it does not return.
func (m *Monitor) PersistTerm() {
	s := m.terms.Load()
	if s == nil {
		return
	}
	if err := s.persist(); err != nil { // raft is being started
		m.fail(err)
	}
}

// Attach gives the monitor the running raft. Before, errors of the store of term and vote are
// returned.
func (m *Monitor) Attach(r *raft.Raft) { m.raft.Store(r) }

// Alone reports whether this server has the only vote, so that no other can lead.
func (m *Monitor) Alone() bool {
	r := m.raft.Load()
	if r == nil {
		return false
	}
	voters, own := 0, false
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			voters++
			own = own || s.ID == m.cfg.Self
		}
	}
	return own && voters == 1
}

// now is a monotonic clock in nanoseconds, never 0.
func (m *Monitor) now() int64 { return int64(time.Since(m.start)) + 1 }

func (m *Monitor) begin() { m.busy.Store(m.now()) }
func (m *Monitor) end()   { m.busy.Store(0) }

// Waiting returns for how long raft's main loop has been waiting for the disk; 0: it does not.
func (m *Monitor) Waiting() time.Duration {
	since := m.busy.Load()
	if since == 0 {
		return 0
	}
	return max(0, time.Duration(m.now()-since))
}

// fault is why the last write to a store failed; empty if it succeeded.
type fault struct{ last atomic.Pointer[error] }

func (f *fault) note(err error) {
	switch {
	case err != nil:
		f.last.Store(&err)
	case f.last.Load() != nil: // read first: it is almost always nil
		f.last.Store(nil)
	}
}

// Fault returns the error of the last write to the log, or to the store of term and vote; empty if both
// succeeded. A store has recovered only when it has taken a write itself: the vote may fit where the log
// does not.
func (m *Monitor) Fault() string {
	for _, f := range []*fault{&m.logFault, &m.stableFault} {
		if err := f.last.Load(); err != nil {
			return (*err).Error()
		}
	}
	return ""
}

// WatchFiles checks, until ctx or raft ends, that the files that this server writes are still where its next start
// looks for them.
func (m *Monitor) WatchFiles(ctx context.Context) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r := m.raft.Load(); r != nil && r.State() == raft.Shutdown {
			return
		}
		err := m.cfg.Store.Lost()
		if err == nil {
			m.lost.Store(nil)
			continue
		}
		text := err.Error()
		m.lost.Store(&text)
		m.logOnce("this server's data is gone, and with its end all that it has acknowledged; take a backup of it "+
			"now, while it runs, and replace it", err)
	}
}

// Lost returns which of this server's files are not where its next start looks for them; empty:
// none.
func (m *Monitor) Lost() string {
	if text := m.lost.Load(); text != nil {
		return *text
	}
	return ""
}

// watchedLog is raft's log store, its writes watched.
type watchedLog struct {
	raft.LogStore
	m *Monitor
}

// IsMonotonic implements raft.MonotonicLogStore for the wrapped store.
func (w *watchedLog) IsMonotonic() bool {
	m, ok := w.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// DeleteRange refuses to delete applied entries from the end of the log, unless a snapshot has them: a leader
// that asks for it has another history, since such entries were committed.
func (w *watchedLog) DeleteRange(first, last uint64) error {
	m := w.m
	if m.cfg.Applied == nil {
		return w.LogStore.DeleteRange(first, last)
	}
	end, err := w.LastIndex()
	applied := m.cfg.Applied.Newest().Index
	if err != nil || last < end || first > applied {
		return errors.Join(err, w.LogStore.DeleteRange(first, last))
	}
	if list, err := m.cfg.Store.Snapshots.List(); err == nil && len(list) > 0 && list[0].Index >= min(last, applied) {
		return w.LogStore.DeleteRange(first, last)
	}
	m.cfg.Forked(first, applied)
	return fmt.Errorf("entries %d to %d are not deleted: up to %d they were applied", first, last, applied)
}

func (w *watchedLog) StoreLog(l *raft.Log) error { return w.StoreLogs([]*raft.Log{l}) }

// StoreLogs returns errors, on which a leader steps down for another. A lone server retries until
// it succeeds instead: it would be elected again at once, and again.
func (w *watchedLog) StoreLogs(logs []*raft.Log) error {
	m := w.m
	m.begin()
	defer m.end()
	m.PersistTerm()
	for {
		err := w.LogStore.StoreLogs(logs)
		m.logFault.note(err)
		m.noteRefusal(err != nil, m.now())
		if err == nil {
			return nil
		}
		m.logOnce("writing raft's log failed; nothing is acknowledged until it works again", err)
		if !m.Alone() {
			return err
		}
		if !m.pause() {
			runtime.Goexit() // raft's main loop, which must not acknowledge
		}
	}
}

// logOnce logs an error of the disk, which every write meets, at most once in a while.
func (m *Monitor) logOnce(msg string, err error) {
	if pass, leftOut := m.repeats.Pass(msg); pass {
		m.cfg.Logger.Error(msg, "error", err, "left_out", leftOut)
	}
}

// pause waits between two attempts, and returns false when the server is closed.
func (m *Monitor) pause() bool {
	select {
	case <-m.cfg.Stopping.Done():
		return false
	case <-time.After(retryInterval):
		return true
	}
}

func (m *Monitor) noteRefusal(refused bool, now int64) {
	switch {
	case refused:
		m.refused.Store(now)
		m.refusing.CompareAndSwap(0, now)
	case m.refused.Load() != 0: // read first: it is almost always 0
		m.refused.Store(0)
		m.refusing.Store(0)
	}
}

// UnwritableFor returns for how long this server has been unable to write its log: it applies
// nothing meanwhile, and its clients are better off elsewhere.
func (m *Monitor) UnwritableFor() time.Duration {
	d := m.Waiting()
	if since := m.refusing.Load(); since != 0 {
		d = max(d, time.Duration(m.now()-since))
	}
	return d
}

// MayCampaign reports whether the log has taken a write since it refused one, or some time has passed.
func (m *Monitor) MayCampaign() bool {
	at := m.refused.Load()
	return at == 0 || time.Duration(m.now()-at) >= campaignPause*m.cfg.ElectionTimeout
}

// retryWhileFull writes term or vote; raft panics when that fails. It waits while the disk is full: a server
// that cannot write its vote only does not vote. After any other error no one knows what the disk holds, and
// the process must end. So it returns nil, or not at all: a goroutine that ends cannot act on a term that the
// disk does not have. Only while raft is being started does it return errors.
func (m *Monitor) retryWhileFull(write func() error) error {
	for {
		err := write()
		m.stableFault.note(err)
		full := errors.Is(err, syscall.ENOSPC)
		if err == nil || !full && m.raft.Load() == nil {
			return err
		}
		if !full {
			m.fail(err)
		}
		m.logOnce("the disk is full; waiting for room to write term or vote", err)
		if m.pause() {
			continue
		}
		if m.raft.Load() != nil {
			runtime.Goexit()
		}
		return fmt.Errorf("stopped while the disk was full: %w", err)
	}
}

// fail ends the process, and this goroutine, since term or vote could not be written.
func (m *Monitor) fail(err error) {
	m.cfg.Fatal(fmt.Errorf("writing term or vote: %w", err))
	<-m.cfg.Stopping.Done()
	runtime.Goexit()
}
