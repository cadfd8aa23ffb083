package transport

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/fault"
)

// Overlapped leader sync (Raft thesis, 10.2.1): hashicorp/raft's leader stores an entry, counts itself, and only then
// replicates, so its disk sync and the followers' come one after the other. Here StoreLogs may
// return after the write and before the sync (mayReturnEarly decides when). raft then counts the leader
// before its disk has the entry. In exchange no follower counts before the leader's disk has
// it: AppendEntries returns a success with entries only after WaitDurable.
//
// CLAIM: every index that raft commits is, at that moment, on the disks of a quorum.
//
// Let D(s) be the last index such that server s holds no volatile record at or below it. raft's
// commit index is the median of match indexes, and moves only when one of them does or when the
// configuration does.
//
//	match(leader)   set after StoreLogs; may exceed D(leader)
//	match(f) = m    set after AppendEntries returned, hence D(leader) >= m (waitAsLeader)
//	                and D(f) >= m (delay), or after InstallSnapshot of an index that was
//	                applied here, hence committed
//
// A quorum above the old commit index with two or more voters holds at least one follower f, and
// the quorum's least match index m' is <= match(f) <= D(leader): the leader's share in the quorum
// is durable up to m'. With one voter there is no follower to wait for, so the store must sync
// inline. A configuration entry makes raft count again at once under the new configuration,
// perhaps of one voter, so it syncs inline too, and with it everything before it.
//
// mayReturnEarly, on raft's main goroutine: true iff raft is attached, the state is Leader (then the
// batch is from dispatchLogs), there are >= 2 voters, and no configuration entry is in the batch.
//
// The follower's side: a follower's own StoreLogs is synchronous, but a deposed leader may hold a
// volatile tail, and raft acknowledges entries that it finds already in its log without StoreLogs.
// So answers are delayed while such a tail may exist. In formulas, with
//
//	allowed  for how many batches mayReturnEarly has returned true
//	settled  a value of allowed such that WaitDurable(high) has returned since, where high is the
//	         highest index of those batches
//
// an answer is passed on directly iff, before its request is handed to raft, the state is Follower
// or Candidate and then settled == allowed: nothing is volatile at that moment (a batch is counted,
// then written, and only then can the state change, all on the main goroutine). What could
// become volatile before raft gets to the request are entries that this server makes as a leader
// later on, and a request that was already here does not contain those: an entry is known by its
// index and term, and only this server makes entries of its own term. settled moves to n only if
// the state was seen as Follower or Candidate after n was read: then all n batches are written,
// and WaitDurable sees their records.
//
// Why the two halves depend on raft's other parts as they are: the heartbeat handler is off (state
// and configuration change on the main goroutine only), the pipeline is refused (answers would
// bypass AppendEntries), requests without entries never move a match index (passed on at once).
//
// What the store and the server must keep: AsyncLog's contract; a sync error is never retried and never
// becomes durable; suffix DeleteRange waits for the syncer first; opening the store syncs the entries
// that it finds; a snapshot's Persist first calls WaitDurable(its index); entries in flight are capped.

// DefaultStallLimit is twice and more the worst sync seen on a healthy disk (0.3 s).
const DefaultStallLimit = time.Second

// AsyncLog is implemented by a raft.LogStore whose syncs can be overlapped. Its methods are called
// from many goroutines.
type AsyncLog interface {
	// SetAsync sets the rule by which StoreLogs may return before the batch is durable. The store calls it
	// in every StoreLogs, before it writes, on the goroutine that raft called it on. If it returns false,
	// the batch and all before it must be durable when StoreLogs returns.
	SetAsync(mayReturnEarly func(batch []*raft.Log) bool)
	// WaitDurable returns nil once no record with an index <= index is volatile, which holds at
	// once for indexes that only a snapshot has. After a failed sync it returns the error forever.
	WaitDurable(index uint64) error
	// Stalled is how long the oldest volatile record has been waiting for its sync, 0 for none.
	Stalled() time.Duration
	// SyncTime is how long the slowest of the last syncs took.
	SyncTime() time.Duration
}

type overlap struct {
	// set at construction; tests replace the two functions to show why they are needed
	link       *raftLink
	log        AsyncLog
	limit      time.Duration
	leaderWait func(index uint64) error
	answerWait func(index uint64) error

	// own synchronisation
	allowed atomic.Uint64
	settled atomic.Uint64
	high    atomic.Uint64
}

func newOverlap(link *raftLink, log AsyncLog, limit time.Duration) *overlap {
	o := &overlap{link: link, log: log, limit: limit}
	if o.limit == 0 {
		o.limit = DefaultStallLimit
	}
	o.leaderWait, o.answerWait = log.WaitDurable, log.WaitDurable
	if fault.On(fault.AckBeforeDisk) {
		none := func(uint64) error { return nil }
		o.leaderWait, o.answerWait = none, none
	}
	log.SetAsync(o.mayReturnEarly)
	return o
}

// mayReturnEarly reports whether StoreLogs may return before this batch is durable; see AsyncLog. It
// returns false until Attach.
func (o *overlap) mayReturnEarly(batch []*raft.Log) bool {
	r := o.link.raft.Load()
	if fault.On(fault.AckBeforeDisk) {
		return true
	}
	if r == nil || len(batch) == 0 || r.State() != raft.Leader {
		return false
	}
	for _, e := range batch {
		if e.Type == raft.LogConfiguration {
			return false
		}
	}
	voters := 0
	for _, s := range o.link.servers() {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	if voters < 2 {
		return false
	}
	if last := batch[len(batch)-1].Index; last > o.high.Load() {
		o.high.Store(last) // the main goroutine is the only writer
	}
	o.allowed.Add(1)
	o.link.count.async.Add(1)
	return true
}

// stalled is the reason to stop acting as leader, if there is one.
func (o *overlap) stalled() error {
	if o.limit < 0 {
		return nil
	}
	if d := o.log.Stalled(); d > o.limit {
		return fmt.Errorf("transport: the local disk has not synced the log for %v (limit %v): "+
			"not acting as leader", d.Round(time.Millisecond), o.limit)
	}
	return nil
}

// waitAsLeader holds a follower's acknowledgement back until the leader's own disk has the entry.
func (o *overlap) waitAsLeader(index uint64) error { return o.leaderWait(index) }

// delay holds an acknowledgement back until everything that it acknowledges is on this server's
// disk.
func (o *overlap) delay(out chan<- raft.RPCResponse, index uint64) chan<- raft.RPCResponse {
	r := o.link.raft.Load()
	if r == nil {
		return out // no StoreLogs has returned early so far, and raft is not running yet
	}
	if quiet(r) && o.settled.Load() == o.allowed.Load() { // the state first, see above
		return out
	}
	o.link.count.delayed.Add(1)
	return o.link.intercept(out, func(resp *raft.RPCResponse) {
		if a, ok := resp.Response.(*raft.AppendEntriesResponse); !ok || !a.Success {
			return
		}
		if err := o.answerWait(index); err != nil {
			resp.Error = fmt.Errorf("transport: entry %d is not durable: %w", index, err)
			return
		}
		o.settle()
	})
}

// quiet: no StoreLogs that may return early is running on raft's main goroutine. (A server
// that shuts down may be in the middle of one; Shutdown is set from any goroutine.)
func quiet(r *raft.Raft) bool {
	s := r.State()
	return s == raft.Follower || s == raft.Candidate
}

// settle notes that the batches counted so far are durable. The order of its steps matters.
func (o *overlap) settle() {
	n := o.allowed.Load() // before high: a later batch may raise high, but is not counted in n
	if n == o.settled.Load() || !quiet(o.link.raft.Load()) {
		return
	}
	if o.answerWait(o.high.Load()) != nil {
		return
	}
	for old := o.settled.Load(); old < n; old = o.settled.Load() {
		if o.settled.CompareAndSwap(old, n) {
			return
		}
	}
}
