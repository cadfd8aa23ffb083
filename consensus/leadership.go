package consensus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/internal/crash"
)

// leadership is who leads, as this server knows it. One goroutine asks raft and publishes it
// (watchLeadership); all others subscribe. So it may be a moment old. Where a moment matters, raft is asked
// itself (Node.leads).
type leadership struct {
	term   uint64
	leader state.ServerID // NoServer: unknown
	role   raft.RaftState // this server's
}

// publisher hands the newest leadership to its subscribers.
type publisher struct {
	mu         sync.Mutex // protects the fields below
	newest     leadership
	lastLeader state.ServerID // the last one that was known
	leaders    uint64         // how often another server was found to lead
	at         time.Time      // of the last change
	changed    chan struct{}  // closed at the next change; nil: nobody has asked
}

// now returns the leadership, and a channel that is closed at its next change.
func (p *publisher) now() (leadership, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.newest, p.changed
}

// publish reports whether l is a change.
func (p *publisher) publish(l leadership) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l == p.newest {
		return false
	}
	if l.leader != p.lastLeader && l.leader != state.NoServer {
		p.leaders++
		p.lastLeader = l.leader
	}
	p.newest, p.at = l, time.Now()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return true
}

// changes returns how often another leader was found, and when the leadership last changed.
func (p *publisher) changes() (leaders uint64, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaders, p.at
}

// readLeadership asks raft.
func readLeadership(r *raft.Raft) leadership {
	for {
		term := r.CurrentTerm()
		_, id := r.LeaderWithID()
		l := leadership{term: term, leader: state.ServerID(transport.ParseRaftID(id)), role: r.State()}
		if r.CurrentTerm() == term {
			return l
		}
	}
}

// noteLeading notes that a leader has shown that it leads.
func (n *Node) noteLeading(leader state.ServerID) {
	if l, _ := n.published.now(); l.leader == leader {
		n.elections.sign(leader, l.term, time.Now())
	}
}

// leads reports whether this server leads at this very moment, as far as it can see. raft calls a
// server leader as long as its main loop waits for the disk, however long the
// others have had another one.
func (n *Node) leads() bool {
	return n.raft.State() == raft.Leader && n.disk.Waiting() < n.cfg.ElectionTimeout
}

// watchLeadership publishes who leads, has commands proposed while this server leads, and repairs what goes
// wrong with leaders: it cuts off one whose disk hangs, and clears one that raft keeps.
func (n *Node) watchLeadership() {
	// raft drops observations that the channel has no room for, so it is also asked at every tick.
	events := make(chan raft.Observation, 64)
	observer := raft.NewObserver(events, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.RaftState:
			return true
		}
		return false
	})
	n.raft.RegisterObserver(observer)
	defer n.raft.DeregisterObserver(observer)
	tick := time.NewTicker(n.cfg.ElectionTimeout / 2)
	defer tick.Stop()
	w := leadershipWatch{n: n}
	defer w.end()
	defer crash.OnPanic()
	for {
		w.update(readLeadership(n.raft))
		select {
		case <-n.ctx.Done():
			return
		case <-events:
		case <-w.ended():
			// An entry was refused although this server still leads, as during a
			// transfer: start afresh, but not in a tight loop.
			select {
			case <-n.ctx.Done():
				return
			case <-time.After(restartPause):
			}
		case <-tick.C:
			w.cutIfDiskHangs()
			w.stale.check(n)
		}
	}
}

// restartPause is how long a leader waits after a refused entry.
const restartPause = 2 * time.Millisecond

// leadershipWatch is what watchLeadership remembers.
type leadershipWatch struct {
	n       *Node
	now     leadership
	batcher *forward.Batcher   // of the present leadership; nil: this server does not lead
	stop    context.CancelFunc // ends the tasks of the present leadership
	refused *refusals          // of the present leadership
	cut     bool               // the connections of raft are cut, because the disk hangs
	stale   staleLeader
}

// ended is closed when the batcher has ended while this server leads.
func (w *leadershipWatch) ended() <-chan struct{} {
	if w.batcher == nil {
		return nil
	}
	return w.batcher.Ended()
}

// update starts and ends this server's leadership, and publishes.
func (w *leadershipWatch) update(l leadership) {
	n, before := w.n, w.now
	w.now = l
	if w.batcher != nil && (l.role != raft.Leader || l.term != before.term) {
		w.endLeadership()
		if l.role != raft.Leader {
			n.published.publish(l) // first, so that no subscriber believes in it while the handler works
			n.cfg.Handler.Lead(0)
		}
	}
	if l.role == raft.Leader {
		if w.batcher == nil {
			w.begin(l.term)
		} else {
			select {
			case <-w.batcher.Ended():
				w.restart(l.term)
			default:
			}
		}
	}
	if n.published.publish(l) {
		n.logger.Debug("leadership changed", "leader", l.leader, "term", l.term, "role", l.role)
	}
}

// begin begins this server's leadership of a term.
func (w *leadershipWatch) begin(term uint64) {
	n := w.n
	w.refused = &refusals{}
	n.forwarder.Stats.Begin()
	n.cfg.Handler.Lead(term)
	var ctx context.Context
	ctx, w.stop = context.WithCancel(n.ctx)
	n.tasks.Go(func() { n.ensemble.RunAutopilot(ctx) })
	w.restart(term)
}

// restart makes a batcher. Those before have ended, and their streams with them.
func (w *leadershipWatch) restart(term uint64) {
	n, refused := w.n, w.refused
	propose := func(entry []byte) func() error {
		future := n.raft.Apply(entry, 0)
		return func() error {
			err := future.Error()
			w.noteRefusal(refused, err)
			return err
		}
	}
	w.batcher = forward.NewBatcher(n.ctx, term, propose, &n.forwarder.Stats, n.logger)
	n.tasks.Go(w.batcher.Run)
	n.forwarder.SetBatcher(w.batcher)
}

func (w *leadershipWatch) endLeadership() {
	w.stop()
	w.batcher = nil
	w.n.forwarder.SetBatcher(nil)
}

func (w *leadershipWatch) end() {
	if w.batcher != nil {
		w.endLeadership()
	}
}

// cutIfDiskHangs cuts the connections of a leader whose disk hangs, so that the others elect.
func (w *leadershipWatch) cutIfDiskHangs() {
	waiting := w.n.disk.Waiting()
	if w.n.alone() {
		return
	}
	switch hangs := waiting > storage.HangLimit; {
	case hangs && !w.cut && w.now.role == raft.Leader:
		w.cut = true
		w.n.logger.Error("the disk does not answer; leaving leadership to the others", "waiting", waiting)
		w.n.mux.CutRaft()
	case !hangs && w.cut:
		w.cut = false
		w.n.logger.Info("the disk answers again")
		w.n.mux.RestoreRaft()
	}
}

// noteRefusal ends the server when raft has refused every entry of a leadership for too long.
func (w *leadershipWatch) noteRefusal(refused *refusals, err error) {
	n := w.n
	limit := 4*n.cfg.ElectionTimeout + time.Second
	switch {
	case err == nil:
		refused.end()
	case errors.Is(err, raft.ErrLeadershipTransferInProgress) && refused.note(time.Now(), limit) > limit:
		n.fatal(errors.New("raft refuses every entry since a transfer of leadership failed; " +
			"the server must be started again"))
	}
}

// refusals is for how long raft has refused every entry of one leadership because of a transfer. It does
// so for at most an election timeout, unless it has forgotten that the transfer has ended
// (hashicorp/raft issue 696): then only a restart helps.
type refusals struct {
	mu          sync.Mutex // protects the fields below
	first, last time.Time  // of the refusals in a row; zero: none
}

// note counts a refusal and returns how long ago the first one in a row was. Refused commands are sent again
// within a fraction of the limit, so after a longer pause another row begins.
func (r *refusals) note(now time.Time, limit time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first.IsZero() || now.Sub(r.last) > limit {
		r.first = now
	}
	r.last = now
	return now.Sub(r.first)
}

// end ends the row: raft has taken an entry.
func (r *refusals) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = time.Time{}
}
