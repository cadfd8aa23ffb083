package transport

import "sync/atomic"

// Stats counts what a Transport has done since it was made.
type Stats struct {
	Entries    int64 // AppendEntries sent by raft with entries
	Empty      int64 // and without, to send the commit index
	Heartbeats int64 // and as heartbeats

	Pushes       int64 // commit indexes pushed to a follower
	PushSkips    int64 // pushes left out because raft was about to say the same
	PushFailures int64 // pushes that could not be sent

	Async   int64 // batches from which StoreLogs was allowed to return early
	Delayed int64 // answers to a leader to a leader that may have waited for this disk
	Stalls  int64 // RPCs not sent because the disk had stalled

	Stale int64 // snapshots not installed, because this server held what they hold

	Probes    int64 // dials to a leader after a connection ended
	Deaths    int64 // findings that the leader is gone or silent
	Asks      int64 // pre-votes asked for on such a finding
	Grants    int64 // pre-votes granted to another server that found the same
	Elections int64 // elections started on such a finding
}

type counters struct {
	entries, empty, heartbeats      atomic.Int64
	pushes, pushSkips, pushFailures atomic.Int64
	async, delayed, stalls          atomic.Int64
	stale                           atomic.Int64
	probes, deaths                  atomic.Int64
	asks, grants, elections         atomic.Int64
}

func (c *counters) appendEntries(entries int, heartbeat bool) {
	switch {
	case heartbeat:
		c.heartbeats.Add(1)
	case entries == 0:
		c.empty.Add(1)
	default:
		c.entries.Add(1)
	}
}

func (c *counters) stats() Stats {
	return Stats{
		Entries:      c.entries.Load(),
		Empty:        c.empty.Load(),
		Heartbeats:   c.heartbeats.Load(),
		Pushes:       c.pushes.Load(),
		PushSkips:    c.pushSkips.Load(),
		PushFailures: c.pushFailures.Load(),
		Async:        c.async.Load(),
		Delayed:      c.delayed.Load(),
		Stalls:       c.stalls.Load(),
		Stale:        c.stale.Load(),
		Probes:       c.probes.Load(),
		Deaths:       c.deaths.Load(),
		Asks:         c.asks.Load(),
		Grants:       c.grants.Load(),
		Elections:    c.elections.Load(),
	}
}
