package forward

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/crash"
)

const (
	maxEntryCommands = 2048 // commands in one entry: about 2 ms of applying
	maxEntryBytes    = 1 << 20
	// Batches that wait to be proposed. Those of seven servers fit, so that no
	// stream stands still with touches in it.
	maxInboxBytes = 16 << 20
)

// Where an entry takes slowEntry and more, those whose commands were in the last one are waited for, for a part of
// the time that it took: they have just got their results, and who misses an entry waits for two.
const (
	slowEntry  = 1500 * time.Microsecond
	gatherPart = 4
)

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
	ctx     context.Context // ends with the leadership, or when its streams must start again
	abort   context.CancelFunc
	wake    chan struct{} // capacity 1
	arrived time.Time     // Run's own: oldest, of what was taken last

	mu      sync.Mutex // protects the fields below
	room    *sync.Cond // on mu: the inbox has room again, or the batcher has ended
	batches []state.Batch
	oldest  time.Time // when the first of them came, or an earlier one
	bytes   int
	count   int // commands
}

// NewBatcher returns the batcher of a leadership. It ends with ctx, or when an entry fails.
func NewBatcher(
	ctx context.Context, term uint64, propose Propose, stats *Stats, logger *slog.Logger,
) *Batcher {
	b := &Batcher{
		term: term, propose: propose, stats: stats, logger: logger,
		wake: make(chan struct{}, 1),
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
	if len(b.batches) == 0 {
		b.oldest = time.Now()
	}
	b.batches = append(b.batches, x)
	b.bytes += len(x.Commands)
	b.count += x.Count
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
	b.arrived = b.oldest
	if n == len(b.batches) {
		b.batches = nil
	} else {
		b.batches = b.batches[n:]
	}
	if b.bytes >= maxInboxBytes {
		b.room.Broadcast()
	}
	b.bytes -= bytes
	b.count -= commands
	return batches
}

// Run proposes until the batcher ends, one entry after the other. An entry costs about the same for one
// command as for a hundred, so commands that arrive while one is in flight share the next. A second one
// in flight would be no gain: raft sends a follower one request at a time, and a disk syncs one at a time.
func (b *Batcher) Run() {
	defer b.wakeAll()
	defer crash.OnPanic()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var took time.Duration // of the last entry
	var commands int       // in it
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.wake:
		}
		for b.waiting() {
			if took >= slowEntry {
				b.gather(timer, commands, took/gatherPart)
			}
			batches := b.take()
			commands = 0
			for i := range batches {
				commands += batches[i].Count
			}
			entry := b.encode(batches)
			b.stats.propose(len(entry), b.term, b.arrived)
			start := time.Now()
			if !b.await(b.propose(entry)) {
				return
			}
			took = time.Since(start)
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

// commands is how many commands wait.
func (b *Batcher) commands() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// gather waits until as many commands wait, but not long.
func (b *Batcher) gather(timer *time.Timer, commands int, limit time.Duration) {
	timer.Reset(limit)
	for b.commands() < commands {
		select {
		case <-b.ctx.Done():
			return
		case <-timer.C:
			return
		case <-b.wake:
		}
	}
}

// wakeAll wakes those who wait for room, because the batcher has ended. Without the
// lock it could come between their check and their wait, and be missed.
func (b *Batcher) wakeAll() {
	b.mu.Lock()
	b.room.Broadcast()
	b.mu.Unlock()
}

// await waits for an entry's end. False means that the batcher has ended, perhaps because raft has refused the
// entry. The results have their own way; only failure matters here.
func (b *Batcher) await(wait func() error) bool {
	ended := make(chan error, 1)
	go func() { ended <- wait() }() // nothing waits for it: raft may never answer
	select {
	case <-b.ctx.Done():
		return false
	case err := <-ended:
		if err != nil {
			b.logger.Debug("entry refused", "term", b.term, "error", err)
			b.abort()
		}
		return err == nil
	}
}

// Stats are the statistics of this server's leadership (ZooKeeper's BufferStats and
// Leader.getUptime).
type Stats struct {
	mu                      sync.Mutex // protects the fields below
	last, smallest, largest int64      // bytes; 0: none yet
	since                   time.Time  // when the leadership began
	term                    uint64     // of the last entry
	arrived                 time.Time  // when the first command of the last entry came
}

// Begin resets all statistics when a leadership begins.
func (s *Stats) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.smallest, s.largest, s.since = 0, 0, 0, time.Now()
}

// propose counts an entry, none of which is empty, and notes when its first command came.
func (s *Stats) propose(bytes int, term uint64, arrived time.Time) {
	n := int64(bytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.arrived = term, arrived
	if s.smallest == 0 || n < s.smallest {
		s.smallest = n
	}
	s.last, s.largest = n, max(s.largest, n)
}

// Arrived returns when the first command of the last entry came that this server has proposed, if its term was this
// one: entries of a term are proposed one after the other.
func (s *Stats) Arrived(term uint64) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived, s.term == term && term != 0
}

// Uptime returns for how long this server has led, if it does.
func (s *Stats) Uptime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return 0
	}
	return time.Since(s.since)
}

// Sizes returns the bytes of the last, the smallest and the largest entry since Begin or ResetSizes; -1
// before the first.
func (s *Stats) Sizes() (last, smallest, largest int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == 0 {
		return -1, -1, -1
	}
	return s.last, s.smallest, s.largest
}

// ResetSizes resets the statistics of Sizes.
func (s *Stats) ResetSizes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.smallest, s.largest = 0, 0, 0
}

// Times say how long an entry took from one stage to the next, as the server sees it that applies it.
type Times struct {
	Index, Term uint64
	// Sent is when the command whose result is delivered was last sent to the leader by this server; zero: it was
	// another server's.
	Sent      time.Time
	Committed time.Time // when this server knew that the entry was committed

	// What only the leader that has proposed the entry knows; Led says so.
	Led      bool
	Arrived  time.Time     // when the first of its commands came to the leader
	Proposed time.Time     // when raft took the entry
	Disk     time.Duration // from then until this server's disk had it, until Committed at most
	Majority time.Duration // from then until a majority had it, which raft counts
}

// Lead fills in what the leader knows. synced is when its disk had the entry; zero: it has not yet.
func (t *Times) Lead(arrived, proposed, synced time.Time) {
	t.Led, t.Arrived, t.Proposed = true, arrived, proposed
	whole := max(t.Committed.Sub(proposed), 0)
	t.Disk = whole
	if !synced.IsZero() {
		t.Disk = min(max(synced.Sub(proposed), 0), whole)
	}
	t.Majority = whole - t.Disk
}
