package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// fakeLog replaces consensus: a log of one server, without raft. Proposals wait until the test applies them (step,
// drain), or a goroutine applies them (run). They pass through the encoding of entries, as in the real log.
type fakeLog struct {
	tb  testing.TB
	srv *Server

	mu      sync.Mutex // protects the fields below
	added   *sync.Cond // on mu: something was proposed, or closed
	waiting []proposal
	status  consensus.Status
	limit   int64 // of TreeMemory
	stopped bool
	spare   error                       // of CheckStop
	touch   func(ids []znode.SessionID) // instead of handler.Touched

	applying sync.Mutex // one applies at a time; protects the fields below
	machine  *state.Machine
	index    uint64
	term     uint64
	seq      map[state.ServerID]uint64
}

// proposal is a command and its waiter.
type proposal struct {
	command []byte
	op      state.Op
	waiter  forward.Waiter
}

// Propose implements Consensus.
func (l *fakeLog) Propose(c *state.Command, w forward.Waiter, _ forward.From) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return ErrClosed
	}
	l.waiting = append(l.waiting, proposal{state.AppendCommand(nil, c), c.Op, w})
	l.added.Broadcast()
	return nil
}

// Touch implements Consensus.
func (l *fakeLog) Touch(ids []znode.SessionID) {
	l.mu.Lock()
	touch := l.touch
	l.mu.Unlock()
	if touch == nil {
		touch = func(ids []znode.SessionID) { l.srv.Handler().Touched(1, ids) }
	}
	touch(ids)
}

// Status implements Consensus.
func (l *fakeLog) Status() consensus.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// TreeMemory implements Consensus.
func (l *fakeLog) TreeMemory() (limit, pending int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.waiting {
		pending += int64(len(p.command))
	}
	return l.limit, pending
}

func (l *fakeLog) setLimit(bytes int64) {
	l.mu.Lock()
	l.limit = bytes
	l.mu.Unlock()
}

// TransferTo implements Ensemble.
func (l *fakeLog) TransferTo(context.Context, state.ServerID) error {
	l.setRole(consensus.RoleFollower)
	return nil
}

// CheckStop implements Ensemble.
func (l *fakeLog) CheckStop(context.Context) error { return l.spare }

func (l *fakeLog) setRole(r consensus.Role) {
	l.mu.Lock()
	l.status.Role = r
	l.mu.Unlock()
}

func (l *fakeLog) setContact(d time.Duration) {
	l.mu.Lock()
	l.status.Contact = d
	l.mu.Unlock()
}

// stop makes Propose fail and ends run.
func (l *fakeLog) stop() {
	l.mu.Lock()
	l.stopped = true
	l.added.Broadcast()
	l.mu.Unlock()
}

// pending is the operations that were proposed and not applied.
func (l *fakeLog) pending() []state.Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ops []state.Op
	for _, p := range l.waiting {
		ops = append(ops, p.op)
	}
	return ops
}

// take removes up to n proposals.
func (l *fakeLog) take(n int) []proposal {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, len(l.waiting))
	taken := slices.Clone(l.waiting[:n])
	l.waiting = l.waiting[n:]
	return taken
}

// step applies the oldest n proposals, one entry with all of them.
func (l *fakeLog) step(n int) {
	l.tb.Helper()
	batch := l.take(n)
	if len(batch) != n {
		l.tb.Fatalf("%d proposals wait, not %d", len(batch), n)
	}
	l.apply(1, batch)
}

// drain applies whatever waits, and what that leads to.
func (l *fakeLog) drain() {
	l.tb.Helper()
	for batch := l.take(1000); len(batch) > 0; batch = l.take(1000) {
		l.apply(1, batch)
	}
}

// lose takes the oldest n proposals away, as a snapshot does that holds them.
func (l *fakeLog) lose(n int) {
	batch := l.take(n)
	l.srv.Handler().BeginApply()
	defer l.srv.Handler().EndApply()
	for _, p := range batch {
		p.waiter.Lost()
	}
}

// run applies in a goroutine whatever is proposed, until stop; several at a time.
func (l *fakeLog) run(wg *sync.WaitGroup) {
	wg.Go(func() {
		for {
			l.mu.Lock()
			for len(l.waiting) == 0 && !l.stopped {
				l.added.Wait()
			}
			done := len(l.waiting) == 0
			l.mu.Unlock()
			if done {
				return
			}
			l.apply(1, l.take(100))
		}
	})
}

// from applies a command of another server of the ensemble.
func (l *fakeLog) from(id state.ServerID, c *state.Command) {
	l.apply(id, []proposal{{state.AppendCommand(nil, c), c.Op, nobody{}}})
}

func (l *fakeLog) apply(from state.ServerID, batch []proposal) {
	l.applying.Lock()
	defer l.applying.Unlock()
	l.index++
	g := state.Batch{
		Origin: state.Origin{Server: from, Incarnation: 1}, First: l.seq[from] + 1, Count: len(batch),
	}
	l.seq[from] += uint64(len(batch))
	for _, p := range batch {
		g.Commands = append(g.Commands, p.command...)
	}
	entry := state.AppendEntry(nil, time.Now().UnixMilli(), []state.Batch{g})
	obs := &fakeObserver{handler: &l.srv.handler, next: batch}
	l.srv.Handler().BeginApply()
	defer l.srv.Handler().EndApply()
	if err := l.machine.Apply(l.index, l.term, entry, obs); err != nil {
		l.tb.Error(err)
	}
	// A log entry's bytes are raft's: no one may have kept a piece of them.
	clear(entry)
}

// fakeObserver brings results to their waiters, as package consensus does.
type fakeObserver struct {
	*handler
	next []proposal
}

func (o *fakeObserver) Result(_ state.Origin, _ uint64, r *state.Result) {
	w := o.next[0].waiter
	o.next = o.next[1:]
	w.Applied(r)
}

func (o *fakeObserver) Gap(state.Origin, uint64) {}

// kit is a server with a fake log.
type kit struct {
	tb  testing.TB
	srv *Server
	log *fakeLog
}

func testConfig() Config {
	return Config{
		ID: 1, Tick: time.Second, MinSessionTimeout: 2 * time.Second,
		MaxSessionTimeout: 60 * time.Second, Grace: 10 * time.Second, ExtendedTypes: true,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// newKit makes a server that has not been started: without a clock.
func newKit(tb testing.TB, change func(*Config)) *kit {
	cfg := testConfig()
	if change != nil {
		change(&cfg)
	}
	l := &fakeLog{tb: tb, machine: state.New(), term: 1, seq: map[state.ServerID]uint64{}}
	l.added = sync.NewCond(&l.mu)
	l.status = consensus.Status{Role: consensus.RoleStandalone, Leader: 1, Term: 1, Voters: 1}
	l.srv = New(cfg)
	l.srv.Handler().BeginApply()
	l.srv.Handler().StateReplaced(l.machine)
	l.srv.Handler().EndApply()
	l.srv.consensus, l.srv.ensemble = l, l
	k := &kit{tb, l.srv, l}
	k.setCaughtUp(true) // there is nothing in this log that it could have missed
	return k
}

// started returns a kit whose server leads and whose clock runs. The test runs in a synctest bubble.
func started(t *testing.T, change func(*Config)) *kit {
	k := newKit(t, change)
	k.srv.Start(k.log, k.log)
	k.srv.Handler().Lead(1)
	t.Cleanup(k.srv.Stop)
	return k
}

// holdings is what a server holds on behalf of clients.
type holdings struct {
	connections int
	bound       int // sessions with a connection
	endWaits    int // sessions whose end is awaited
	watches     int64
}

// holds returns what the server holds. Only this, setCaughtUp and client.queued read private fields.
func (k *kit) holds() holdings {
	k.srv.conns.mu.Lock()
	defer k.srv.conns.mu.Unlock()
	k.srv.ends.mu.Lock()
	defer k.srv.ends.mu.Unlock()
	return holdings{
		len(k.srv.conns.all), len(k.srv.conns.bound), len(k.srv.ends.waiting), k.srv.watches.Summary().Total,
	}
}

// setCaughtUp sets whether the server has caught up since it was last out of touch.
func (k *kit) setCaughtUp(done bool) {
	k.srv.catchUp.mu.Lock()
	defer k.srv.catchUp.mu.Unlock()
	k.srv.catchUp.done = done
}

// queued is how many of the client's requests wait.
func (c *client) queued() int {
	c.Conn.mu.Lock()
	defer c.Conn.mu.Unlock()
	return c.queue.Len()
}
