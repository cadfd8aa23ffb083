package consensus

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport"
	deliberate "github.com/zk-lite/zk-lite/internal/fault"
)

// Limits of patience with the disk (decision D15).
const (
	// diskHangs is how long a write may take before a leader's peer connections
	// are cut, so that the others elect: raft's heartbeats go on while its main
	// loop waits for the disk.
	diskHangs = 5 * time.Second
	// diskRetry is the pause between two tries to write term or vote to a full
	// disk. raft would panic on the first error.
	diskRetry = 100 * time.Millisecond
	// standAgain is for how many election timeouts after its log has refused a write a server
	// stands for no election. Without it a leader that steps down for that reason stands at
	// once, its log as long as any other's, wins as often as not, and steps down again: up to
	// seven seconds without a leader were seen. It is bounded, because the others may need this
	// server's log, and it learns that there is room again only by writing.
	standAgain = 5
)

// errDiskRefuses is why a server does not stand for election.
var errDiskRefuses = errors.New("this server's log has refused a write; it does not stand for election")

// disk stands between raft and its stores and watches how long they take.
type disk struct {
	n    *Node
	busy atomic.Int64 // now() when raft's main loop began to wait; 0 it does not
	// refused is now() when the log refused a write, and refusing when it began to; 0: it has
	// taken one since.
	refused, refusing atomic.Int64

	logFault, stableFault fault
}

func newDisk(n *Node) *disk { return &disk{n: n} }

func (d *disk) log() raft.LogStore { return &watchedLog{d.n.cfg.Storage.Log, d} }
func (d *disk) stable() raft.StableStore {
	if deliberate.On(deliberate.ForgetVote) {
		for _, key := range []string{"CurrentTerm", "LastVoteTerm"} { // raft's
			_ = d.n.cfg.Storage.Stable.SetUint64([]byte(key), 0)
		}
	}
	return &patientStable{d.n.cfg.Storage.Stable, d}
}

func (d *disk) begin() { d.busy.Store(d.n.now()) }
func (d *disk) end()   { d.busy.Store(0) }

// waiting is how long raft's main loop has been waiting for the disk; 0 it does not.
func (d *disk) waiting() time.Duration {
	since := d.busy.Load()
	if since == 0 {
		return 0
	}
	return max(0, time.Duration(d.n.now()-since))
}

// fault is why the last write to a store failed; empty if it succeeded.
type fault struct{ last atomic.Pointer[error] }

func (f *fault) note(err error) {
	switch {
	case err != nil:
		f.last.Store(&err)
	case f.last.Load() != nil: // looked at first: it is nil nearly always
		f.last.Store(nil)
	}
}

// fault says, for Status, what is wrong with the disk. A store is only well
// again when it has taken a write itself: the vote may fit where the log does not.
func (d *disk) fault() string {
	for _, f := range []*fault{&d.logFault, &d.stableFault} {
		if err := f.last.Load(); err != nil {
			return (*err).Error()
		}
	}
	return ""
}

// watch cuts the connections of a leader whose disk hangs.
func (d *disk) watch() {
	look := time.NewTicker(diskHangs / 5)
	defer look.Stop()
	cut := false
	for {
		select {
		case <-d.n.ctx.Done():
			return
		case <-look.C:
		}
		since := d.busy.Load()
		hangs := since != 0 && time.Duration(d.n.now()-since) > diskHangs
		switch {
		case hangs && !cut && d.n.raft.State() == raft.Leader:
			cut = true
			d.n.logger.Error("the disk does not answer; leaving leadership to the others",
				"waiting", time.Duration(d.n.now()-since))
			d.n.mux.CutRaft()
		case !hangs && cut:
			cut = false
			d.n.logger.Info("the disk answers again")
			d.n.mux.RestoreRaft()
		}
	}
}

// watchedLog is raft's log store, its writes watched.
type watchedLog struct {
	raft.LogStore
	d *disk
}

// IsMonotonic implements raft.MonotonicLogStore for the store within.
func (w *watchedLog) IsMonotonic() bool {
	m, ok := w.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func (w *watchedLog) StoreLog(l *raft.Log) error { return w.StoreLogs([]*raft.Log{l}) }

func (w *watchedLog) StoreLogs(logs []*raft.Log) error {
	w.d.begin()
	defer w.d.end()
	err := w.LogStore.StoreLogs(logs)
	w.d.logFault.note(err)
	w.d.noteRefusal(err != nil, w.d.n.now())
	if err != nil {
		w.d.n.logger.Error("writing raft's log failed; nothing is acknowledged until it works again",
			"error", err)
	}
	return err
}

func (d *disk) noteRefusal(refused bool, now int64) {
	switch {
	case refused:
		d.refused.Store(now)
		d.refusing.CompareAndSwap(0, now)
	case d.refused.Load() != 0: // looked at first: it is 0 nearly always
		d.refused.Store(0)
		d.refusing.Store(0)
	}
}

// useless is for how long this server has not been able to write what it is told: it applies
// nothing, whoever leads, and its clients are better off elsewhere.
func (d *disk) useless() time.Duration {
	useless := d.waiting()
	if since := d.refusing.Load(); since != 0 {
		useless = max(useless, time.Duration(d.n.now()-since))
	}
	return useless
}

// mayStand reports whether the log has taken a write since it refused one, or some time has gone.
func (d *disk) mayStand(now int64) bool {
	at := d.refused.Load()
	return at == 0 || time.Duration(now-at) >= standAgain*d.n.cfg.ElectionTimeout
}

// candidacy is the transport as raft sees it: without the others' pre-votes nobody stands.
type candidacy struct {
	*transport.Transport
	d *disk
}

// RequestPreVote implements raft.WithPreVote.
func (c *candidacy) RequestPreVote(id raft.ServerID, target raft.ServerAddress,
	req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	if !c.d.mayStand(c.d.n.now()) {
		return errDiskRefuses
	}
	return c.Transport.RequestPreVote(id, target, req, resp)
}

// patientStable is raft's store of term and vote, which panics when a term is refused. A
// full disk is waited for: a server that cannot write its vote does not vote, and that is
// all. After any other error nobody knows what the disk holds, and the process must end.
type patientStable struct {
	raft.StableStore
	d *disk
}

func (p *patientStable) Set(key, value []byte) error {
	return p.patiently(func() error { return p.StableStore.Set(key, value) })
}

func (p *patientStable) SetUint64(key []byte, value uint64) error {
	return p.patiently(func() error { return p.StableStore.SetUint64(key, value) })
}

// patiently returns nil, or not at all: raft's main loop writes here, and one that ends
// without a word cannot act on a term that the disk does not have. Only while raft is being
// started, by join, it returns errors.
func (p *patientStable) patiently(write func() error) error {
	p.d.begin()
	defer p.d.end()
	for said := false; ; said = true {
		err := write()
		p.d.stableFault.note(err)
		full := errors.Is(err, syscall.ENOSPC)
		if err == nil || !full && !p.d.n.started() {
			return err
		}
		if !full {
			p.d.n.fatal(fmt.Errorf("writing term or vote: %w", err))
			<-p.d.n.ctx.Done()
			runtime.Goexit()
		}
		if !said {
			p.d.n.logger.Error("the disk is full; waiting for room to write term or vote", "error", err)
		}
		select {
		case <-p.d.n.ctx.Done():
			if p.d.n.started() {
				runtime.Goexit()
			}
			return fmt.Errorf("stopped while the disk was full: %w", err)
		case <-time.After(diskRetry):
		}
	}
}

// started reports whether raft runs.
func (n *Node) started() bool {
	select {
	case <-n.ready:
		return true
	default:
		return false
	}
}
