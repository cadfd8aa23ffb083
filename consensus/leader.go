package consensus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// reign is this server's time as the leader in one term. It gathers the groups
// of all servers and hands them to raft. When anything goes wrong with an
// entry the reign's streams end, and all servers send again what they miss.
type reign struct {
	node  *Node
	term  uint64
	ctx   context.Context // ends with the reign, or when its streams must start afresh
	abort context.CancelFunc
	wake  chan struct{} // capacity 1
	slots chan struct{} // capacity maxInFlight: entries raft has not finished
	freed chan struct{} // capacity 1: an entry has left its slot

	refused *refusals // of this term

	mu     sync.Mutex // protects the fields below
	room   *sync.Cond // on mu: the inbox has room again, or the reign has ended
	groups []state.Batch
	bytes  int
}

func newReign(n *Node, term uint64, refused *refusals) *reign {
	r := &reign{
		node: n, term: term,
		wake:  make(chan struct{}, 1),
		slots: make(chan struct{}, maxInFlight),
		freed: make(chan struct{}, 1),

		refused: refused,
	}
	r.ctx, r.abort = context.WithCancel(n.ctx)
	r.room = sync.NewCond(&r.mu)
	return r
}

// submit puts a group into the inbox. It blocks while that is full, which
// slows down only the stream it came on. False means that the reign has ended.
func (r *reign) submit(g state.Batch) bool {
	r.mu.Lock()
	for r.bytes >= maxInboxBytes && r.ctx.Err() == nil {
		r.room.Wait()
	}
	if r.ctx.Err() != nil {
		r.mu.Unlock()
		return false
	}
	r.groups = append(r.groups, g)
	r.bytes += len(g.Commands)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return true
}

// take removes the groups of one entry from the inbox.
func (r *reign) take() []state.Batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, bytes, commands := 0, 0, 0
	for n < len(r.groups) {
		g := &r.groups[n]
		if n > 0 && (bytes+len(g.Commands) > maxEntryBytes || commands+g.Count > maxEntryCommands) {
			break
		}
		bytes += len(g.Commands)
		commands += g.Count
		n++
	}
	groups := r.groups[:n:n]
	if n == len(r.groups) {
		r.groups = nil
	} else {
		r.groups = r.groups[n:]
	}
	if r.bytes >= maxInboxBytes {
		r.room.Broadcast()
	}
	r.bytes -= bytes
	return groups
}

// propose runs until the reign ends. One command alone goes out at once: there
// is no waiting for company, only for the entry before it (pace).
func (r *reign) propose() {
	defer r.wakeAll()
	timer := time.NewTimer(overlapAfter)
	defer timer.Stop()
	var last time.Time // when the newest entry was handed to raft
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wake:
		}
		for r.waiting() {
			if !r.pace(timer, last) {
				return
			}
			entry := r.encode(r.take())
			r.node.proposals.count(len(entry))
			last = time.Now()
			future := r.node.raft.Apply(entry, 0)
			go r.await(future) // not one of tasks: raft may never answer (answerOf)
		}
	}
}

// encode makes an entry of groups.
func (r *reign) encode(groups []state.Batch) []byte {
	size := 16
	for i := range groups {
		size += len(groups[i].Commands) + 48
	}
	return state.AppendEntry(make([]byte, 0, size), time.Now().UnixMilli(), groups)
}

// waiting reports whether there is something to propose.
func (r *reign) waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.groups) > 0
}

// pace takes a slot for the next entry, and lets it go when none is under way, or
// when the newest has been for overlapAfter. An entry costs all servers about as
// much for one command as for a hundred, so while one is quick, what comes
// meanwhile had better share the next. False means that the reign has ended.
func (r *reign) pace(timer *time.Timer, last time.Time) bool {
	select {
	case <-r.ctx.Done():
		return false
	case r.slots <- struct{}{}:
	}
	if len(r.slots) > 1 { // this one, and another
		timer.Reset(overlapAfter - time.Since(last))
	}
	for len(r.slots) > 1 {
		select {
		case <-r.ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-r.freed: // or it was long ago
		}
	}
	return true
}

// wakeAll tells those who wait for room that the reign has ended. Without the
// lock it could come between a look at the reign and the wait, and be missed.
func (r *reign) wakeAll() {
	r.mu.Lock()
	r.room.Broadcast()
	r.mu.Unlock()
}

// await frees the entry's slot. The results have their own way; only failure
// matters here.
func (r *reign) await(f raft.ApplyFuture) {
	err := f.Error()
	r.free()
	if err == nil {
		r.refused.end()
		return
	}
	limit := 4*r.node.cfg.ElectionTimeout + time.Second
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) && r.refused.note(time.Now(), limit) > limit {
		r.node.fatal(errors.New("raft refuses every entry since a transfer of leadership failed; " +
			"the server must be started again"))
	}
	r.node.logger.Debug("entry refused", "term", r.term, "error", err)
	r.abort()
}

// free gives an entry's slot back.
func (r *reign) free() {
	<-r.slots
	select {
	case r.freed <- struct{}{}:
	default:
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
