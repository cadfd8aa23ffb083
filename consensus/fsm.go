package consensus

import (
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/crash"
)

// fsm is what raft sees of the state machine. All methods but Persist run on
// one goroutine, the only writer of the machine.
type fsm struct {
	n       *Node
	machine *state.Machine
	broken  bool // an entry could not be applied: nothing is from then on

	times forward.Times // of the entry that is applied

	members  uint64      // machine.MembersChanged, when last looked at
	level    state.Level // that is kept for the next start
	commands int64       // applied since the last snapshot was asked for
	bytes    int64       // of the log, in which they are
	digest   bool        // take a digest after this entry
}

var _ raft.BatchingFSM = (*fsm)(nil)

// Apply implements raft.FSM; raft calls ApplyBatch instead.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch applies entries. Readers are let in between any two.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	committed := time.Now()
	begin := committed
	f.n.leadership.NoteEntry(logs[len(logs)-1].Term, committed)
	for _, l := range logs {
		if f.broken || f.n.halted.Load() != nil {
			f.broken = true // its index stays that of the last entry before
			break
		}
		if l.Type == raft.LogCommand {
			f.machine.Prepare(l.Data)
		}
		f.n.cfg.Handler.BeginApply()
		f.noteTimes(l, committed)
		err := f.apply(l)
		f.n.cfg.Handler.EndApply()
		end := time.Now()
		f.n.applies.Observe(end.Sub(begin))
		begin = end
		if err != nil {
			f.broken = true
			f.n.fatal(fmt.Errorf("this server cannot apply the log any further: %w", err))
		}
	}
	f.afterBatch()
	return make([]any, len(logs))
}

// apply applies an entry, and does what follows from it before readers see it.
func (f *fsm) apply(l *raft.Log) error {
	obs := observer{f.n.cfg.Handler, f}
	switch l.Type {
	case raft.LogCommand:
		f.bytes += int64(len(l.Data))
		if err := f.machine.Apply(l.Index, l.Term, l.Data, obs); err != nil {
			return err
		}
	case raft.LogConfiguration:
		servers := raft.DecodeConfiguration(l.Data).Servers
		f.machine.Configure(l.Index, l.Term, membership.VotersOf(servers), obs)
	}
	f.afterEntry(l)
	return nil
}

// afterEntry does what follows an entry.
func (f *fsm) afterEntry(l *raft.Log) {
	f.advanceIncarnation()
	f.followPeers(l)
	f.checkEntry(l)
}

// afterBatch does what follows entries, as far as they were applied.
func (f *fsm) afterBatch() {
	f.publishMembers()
	if f.broken {
		return
	}
	f.publishLevel()
	f.keepLevel()
	f.n.applied.Index.Store(f.machine.Index())
	f.n.transport.Committed(f.machine.Index())
	f.wantSnapshot()
}

// noteTimes takes what is known of an entry's way here.
func (f *fsm) noteTimes(l *raft.Log, committed time.Time) {
	t := &f.times
	*t = forward.Times{Index: l.Index, Term: l.Term, Committed: committed}
	if arrived, led := f.n.forwarder.Stats.Arrived(l.Term); led && l.Type == raft.LogCommand {
		synced := committed // a store whose appends end with their sync has no times of its own
		if log := f.n.cfg.Storage.Raftlog; log != nil {
			synced = log.SyncedAt(l.Index)
		}
		t.Lead(arrived, l.AppendedAt, synced)
		f.n.commits.Observe(t.Disk + t.Majority)
	}
	f.n.cfg.Handler.Entry(t)
}

// observer passes on what the machine reports, and brings results to those who
// wait on this server.
type observer struct {
	Handler
	f *fsm
}

// Result implements state.Observer.
func (o observer) Result(origin state.Origin, seq uint64, r *state.Result) {
	o.f.commands++
	o.f.digest = o.f.digest || r.Op == state.OpDigest
	if origin != o.f.n.queue.OriginApplying() {
		return
	}
	if w, ok := o.f.n.queue.Applied(seq); ok {
		o.f.times.Sent = o.f.n.queue.SentApplying()
		o.f.publishMembers() // what waits for OpMember reads them next, and for OpLevel the level
		o.f.publishLevel()
		w.Applied(r)
	}
}

// Gap implements state.Observer.
func (o observer) Gap(origin state.Origin, want uint64) {
	o.f.n.logger.Debug("commands arrived out of order", "server", origin.Server, "want", want)
	if origin == o.f.n.queue.OriginApplying() {
		o.f.n.queue.Rewind()
	}
}

// Restore implements raft.FSM: a new machine is built and takes the old one's
// place.
func (f *fsm) Restore(in io.ReadCloser) error {
	defer in.Close()
	start := time.Now()
	r := &counted{Reader: in}
	m, err := state.ReadSnapshot(r)
	if err != nil {
		return err
	}
	f.n.snapshots.size.Store(r.bytes)
	if err := m.Level().Spoken(); err != nil {
		f.broken = true
		f.n.fatal(err)
		return err
	}
	f.n.logger.Info("snapshot restored", "index", m.Index(), "zxid", m.Zxid(),
		"znodes", m.Tree().Size().Znodes, "sessions", m.Sessions().Len(), "took", time.Since(start))
	defer f.keepLevel()
	f.n.cfg.Handler.BeginApply()
	defer f.n.cfg.Handler.EndApply()
	defer crash.OnPanic()
	f.machine, f.broken, f.times = m, false, forward.Times{Index: m.Index()}
	f.n.cfg.Handler.StateReplaced(m)
	f.members = m.MembersChanged() + 1
	f.publishMembers()
	f.publishLevel()
	for _, w := range f.n.queue.SkipTo(m.Applied(f.n.queue.OriginApplying())) {
		w.Lost()
	}
	f.advanceIncarnation()
	f.n.check.Record.SetVoters(m.Voters())
	f.n.check.Applied(m, m.Point(), true)
	f.n.applied.Index.Store(m.Index())
	return nil
}

// ignore is a Waiter of commands whose results do not matter.
type ignore struct{}

func (ignore) Applied(*state.Result) {}
func (ignore) Lost()                 {}
