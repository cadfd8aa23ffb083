package forward

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

const (
	maxEntryCommands = 2048 // commands in one entry: about 2 ms of applying
	maxEntryBytes    = 1 << 20
	maxInFlight      = 2 // entries handed to raft and not yet applied
	// Batches that wait to be proposed. Those of seven servers fit, so that no
	// stream stands still with touches in it.
	maxInboxBytes = 16 << 20
)

// overlapAfter is how long the newest entry is in flight before another one is
// proposed beside it. Where disk and network are quick it has been applied by
// then; where they are slow, a command waits for no longer than this.
const overlapAfter = 4 * time.Millisecond

// Propose hands an entry to raft. The returned function waits for its end: nil when it has been applied here.
type Propose func(entry []byte) (wait func() error)

// Batcher gathers the batches of all servers while this one leads, and makes entries of them. When anything
// goes wrong with an entry the batcher ends, and the streams with it, and all servers send again what they
// miss.
type Batcher struct {
	term    uint64
	propose Propose
	stats   *Stats
	logger  *slog.Logger
	ctx     context.Context // ends with the leadership, or when its streams must start afresh
	abort   context.CancelFunc
	wake    chan struct{} // capacity 1
	slots   chan struct{} // capacity maxInFlight: entries raft has not finished
	freed   chan struct{} // capacity 1: an entry has left its slot

	mu      sync.Mutex // protects the fields below
	room    *sync.Cond // on mu: the inbox has room again, or the batcher has ended
	batches []state.Batch
	bytes   int
}

// NewBatcher returns the batcher of a leadership. It ends with ctx, or when an entry fails.
func NewBatcher(
	ctx context.Context, term uint64, propose Propose, stats *Stats, logger *slog.Logger,
) *Batcher {
	b := &Batcher{
		term: term, propose: propose, stats: stats, logger: logger,
		wake:  make(chan struct{}, 1),
		slots: make(chan struct{}, maxInFlight),
		freed: make(chan struct{}, 1),
	}
	b.ctx, b.abort = context.WithCancel(ctx)
	b.room = sync.NewCond(&b.mu)
	return b
}

// Ended is closed when the batcher has ended.
func (b *Batcher) Ended() <-chan struct{} { return b.ctx.Done() }

// End ends the batcher.
func (b *Batcher) End() { b.abort() }

// submit puts a batch into the inbox. It blocks while that is full, which
// slows down only the stream it came on. False means that the batcher has ended.
func (b *Batcher) submit(x state.Batch) bool {
	b.mu.Lock()
	for b.bytes >= maxInboxBytes && b.ctx.Err() == nil {
		b.room.Wait()
	}
	if b.ctx.Err() != nil {
		b.mu.Unlock()
		return false
	}
	b.batches = append(b.batches, x)
	b.bytes += len(x.Commands)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// take removes the batches of one entry from the inbox.
func (b *Batcher) take() []state.Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, bytes, commands := 0, 0, 0
	for n < len(b.batches) {
		x := &b.batches[n]
		if n > 0 && (bytes+len(x.Commands) > maxEntryBytes || commands+x.Count > maxEntryCommands) {
			break
		}
		bytes += len(x.Commands)
		commands += x.Count
		n++
	}
	batches := b.batches[:n:n]
	if n == len(b.batches) {
		b.batches = nil
	} else {
		b.batches = b.batches[n:]
	}
	if b.bytes >= maxInboxBytes {
		b.room.Broadcast()
	}
	b.bytes -= bytes
	return batches
}

// Run proposes until the batcher ends. A single command is sent at once, unless an entry is still in flight
// (waitForSlot).
func (b *Batcher) Run() {
	defer b.wakeAll()
	timer := time.NewTimer(overlapAfter)
	defer timer.Stop()
	var last time.Time // when the newest entry was handed to raft
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.wake:
		}
		for b.waiting() {
			if !b.waitForSlot(timer, last) {
				return
			}
			entry := b.encode(b.take())
			b.stats.count(len(entry))
			last = time.Now()
			go b.await(b.propose(entry)) // nobody waits for it: raft may never answer
		}
	}
}

// encode makes an entry of batches.
func (b *Batcher) encode(batches []state.Batch) []byte {
	size := 16
	for i := range batches {
		size += len(batches[i].Commands) + 48
	}
	return state.AppendEntry(make([]byte, 0, size), time.Now().UnixMilli(), batches)
}

// waiting reports whether there is something to propose.
func (b *Batcher) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.batches) > 0
}

// waitForSlot takes a slot for the next entry, and lets it go when none is under way, or
// when the newest has been for overlapAfter. An entry costs all servers about as
// much for one command as for a hundred, so while one is quick, what comes
// meanwhile had better share the next. False means that the batcher has ended.
func (b *Batcher) waitForSlot(timer *time.Timer, last time.Time) bool {
	select {
	case <-b.ctx.Done():
		return false
	case b.slots <- struct{}{}:
	}
	if len(b.slots) > 1 { // this one, and another
		timer.Reset(overlapAfter - time.Since(last))
	}
	for len(b.slots) > 1 {
		select {
		case <-b.ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-b.freed: // or it was long ago
		}
	}
	return true
}

// wakeAll wakes those who wait for room, because the batcher has ended. Without the
// lock it could come between their check and their wait, and be missed.
func (b *Batcher) wakeAll() {
	b.mu.Lock()
	b.room.Broadcast()
	b.mu.Unlock()
}

// await frees the entry's slot. The results have their own way; only failure
// matters here.
func (b *Batcher) await(wait func() error) {
	err := wait()
	b.free()
	if err != nil {
		b.logger.Debug("entry refused", "term", b.term, "error", err)
		b.abort()
	}
}

// free gives an entry's slot back.
func (b *Batcher) free() {
	<-b.slots
	select {
	case b.freed <- struct{}{}:
	default:
	}
}
