package forward

import "time"

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
