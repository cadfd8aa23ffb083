package transport

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Fast failover: when a process dies its kernel closes its connections and refuses new ones. A
// follower whose inbound raft connection ends checks whether the leader's address refuses. If it
// does, and a majority of the voters (itself included) finds the same, the follower starts the election
// at once instead of after the heartbeat timeout. A leader that has been silent for that timeout is
// suspected as well: raft's own timers look only once in one to two timeouts, and at different moments.
//
// Steps: (1) an inbound raft connection ended, or the leader is silent, and this server is a follower of
// another; (2) probe the leader's address unless it is silent: refused means dead; an accepted connection
// that stays open for probeRead means alive; anything else is left to the silence; (3) only voters act, the
// n-th of them n staggers later; (4) ask the other voters by RequestPreVote: a server that suspects
// the same leader, if need be after a look at it, grants it if the asker's log is not older than its own
// and it has not promised itself to another (prevote.go), every other server lets raft answer, and raft
// refuses while it has a leader; (5) with a majority, and still in the same term, hand raft a TimeoutNow, as
// the leader would in a leadership transfer; (6) again, until there is a leader.
//
// Why it is safe: raft's safety never depends on when a server campaigns. TimeoutNow only starts an
// ordinary election early; terms, persisted votes and the comparison of logs are raft's own. The
// pre-vote that is granted here is advice to a server that asked for advice, and persists nothing; a
// refused one is a lost message to raft.
// INVARIANT: no false finding can lose or fork an entry; the worst is a needless election, and it
// takes a majority with the same false finding. What early elections do void is a read lease that
// assumes that followers refuse votes while they hear from the leader: nothing here may read by
// LeaderLeaseTimeout.
//
// Why it is live: a promise expires, however often its candidate asks again, and after suspectFor everything is
// left to raft's timers.
//
// timeoutNow in raft checks neither state nor suffrage (a leader would step down, a non-voter
// would campaign), hence the checks of steps 3 and 5 here.

const (
	probeTimeout = 200 * time.Millisecond // for a connect; a living host answers far sooner
	probeRead    = 10 * time.Millisecond  // a dying process may accept, but does not keep the connection
	probeTries   = 3
	retryPause   = 5 * time.Millisecond  // before the second round: others may notice later
	retryMax     = 80 * time.Millisecond // before later ones, each pause twice as long as the one before
	suspectFor   = 2 * time.Second       // how long a finding counts, and its finder tries to act on it
	staggerMin   = 2 * time.Millisecond  // between two ranks, so that the first need not compete
	// promiseMin is how long a promise lasts, beyond the known times of disks and network: for a candidate
	// that gets no processor. It matters only if the candidate dies.
	promiseMin = 250 * time.Millisecond
	// A candidate and then its voters write term and vote (two syncs each), then the first entry.
	promiseSyncs, promiseTrips = 12, 8

	never = time.Duration(math.MaxInt64)
)

type detector struct {
	// set at construction
	link    *raftLink
	net     *raft.NetworkTransport // for pre-votes
	mux     *mux.Mux               // for probes
	log     raft.LogStore
	id      raft.ServerID
	silence time.Duration        // of a leader that is suspected without further signs
	syncs   func() time.Duration // how long a disk sync takes
	wake    chan struct{}        // room for one

	mu      sync.Mutex // protects the fields below
	suspect raft.ServerAddress
	term    uint64                 // in which it is suspected
	until   time.Time              // the suspicion counts until then
	trip    time.Duration          // a round trip to the suspect's host
	asking  map[raft.ServerID]bool // a pre-vote is on its way
	promise promise
}

func newDetector(link *raftLink, cfg *Config, net *raft.NetworkTransport) *detector {
	d := &detector{
		link: link, net: net, mux: cfg.Mux, log: cfg.Log, id: cfg.LocalID, silence: cfg.Silence,
		syncs: func() time.Duration { return 0 },
		wake:  make(chan struct{}, 1), asking: map[raft.ServerID]bool{},
	}
	if log, ok := cfg.Log.(AsyncLog); ok {
		d.syncs = log.SyncTime
	}
	return d
}

// look has the detector look after the leader. The mux calls it when an inbound raft connection has ended. It
// never blocks.
func (d *detector) look() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *detector) loop() {
	timer := time.NewTimer(cmp.Or(d.silence, never))
	defer timer.Stop()
	for {
		hint := false
		select {
		case <-d.link.done:
			return
		case <-d.wake:
			hint = true
		case <-timer.C:
		}
		r := d.link.raft.Load()
		timer.Reset(d.nextLook(r))
		if r == nil {
			continue
		}
		leader := d.leaderElsewhere(r)
		switch {
		case leader == "":
		case hint && d.dead(leader), d.silent(r):
			d.campaign(r, leader)
		}
	}
}

// leaderElsewhere is the leader's address if this server follows another, else empty.
func (d *detector) leaderElsewhere(r *raft.Raft) raft.ServerAddress {
	if r.State() != raft.Follower {
		return ""
	}
	addr, id := r.LeaderWithID()
	if id == d.id {
		return ""
	}
	return addr
}

// nextLook is when the leader will have been silent for too long if it is silent from now on: about once per timeout
// while all is well, for a server that has nothing to do should not be woken.
func (d *detector) nextLook(r *raft.Raft) time.Duration {
	switch {
	case d.silence <= 0:
		return never
	case r == nil || r.State() != raft.Follower:
		return d.silence
	}
	return max(d.silence/8, d.silence-time.Since(r.LastContact())+1)
}

// silent reports whether the leader has not been heard for the heartbeat timeout.
func (d *detector) silent(r *raft.Raft) bool {
	last := r.LastContact()
	return d.silence > 0 && !last.IsZero() && time.Since(last) > d.silence
}

// dead reports whether addr refuses connections.
func (d *detector) dead(addr raft.ServerAddress) bool {
	d.link.count.probes.Add(1)
	for range probeTries {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		start := time.Now()
		c, err := d.mux.DialBare(ctx, string(addr))
		cancel()
		if errors.Is(err, syscall.ECONNREFUSED) {
			d.mu.Lock()
			d.trip = time.Since(start)
			d.mu.Unlock()
			return true
		}
		if err != nil {
			return false // unreachable or slow: its silence decides
		}
		c.SetReadDeadline(time.Now().Add(probeRead))
		var b [1]byte
		_, err = c.Read(b[:])
		c.Close()
		var ne net.Error
		if err == nil || errors.As(err, &ne) && ne.Timeout() {
			return false // it accepts and keeps the connection
		}
	}
	return false
}

// campaign starts elections to replace the dead leader, if a majority suspects it too, until there is
// another leader.
func (d *detector) campaign(r *raft.Raft, leader raft.ServerAddress) {
	term := r.CurrentTerm()
	d.link.count.deaths.Add(1)
	stagger := d.setSuspect(leader, term)
	others, rank, voters, ok := d.electorate(leader)
	if !ok {
		return
	}
	start := time.Now()
	pause, next := time.Duration(rank)*stagger, retryPause
	for time.Since(start) < suspectFor && d.link.sleep(pause) {
		addr, _ := r.LeaderWithID()
		if addr != "" && (addr != leader || r.CurrentTerm() != term) || r.State() == raft.Shutdown {
			return
		}
		if r.State() == raft.Follower {
			d.round(r, others, voters)
		}
		pause, next = next, min(2*next, retryMax)
	}
}

// round asks the others once, and starts an election if a majority agrees.
func (d *detector) round(r *raft.Raft, others []raft.Server, voters int) {
	need := voters/2 + 1
	d.mu.Lock()
	if d.promise.keptFor(d.id) {
		d.mu.Unlock()
		return
	}
	d.promise.release(d.id) // a remaining promise of an earlier round
	timeout := d.promiseTimeLocked()
	d.promise.give(d.id, timeout)
	broken := d.promise.broken
	d.mu.Unlock()
	term := r.CurrentTerm()
	if !d.majorityAgrees(r, term, others, need, timeout/2, broken) || !d.beginCampaign(r, term, voters-need, broken) {
		d.refused(d.id)
		d.withdraw(others)
		return
	}
	d.link.logger.Info("the leader's process has ended or is silent; starting an election", "term", term)
	answer := make(chan raft.RPCResponse, 1)
	select {
	case d.link.rpcs <- raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: d.header()}, RespChan: answer}:
		d.link.count.elections.Add(1)
	case <-broken: // another candidate's request for a vote has arrived meanwhile
		d.withdraw(others)
		return
	case <-d.link.done:
		return
	}
	select {
	case <-answer: // raft is a candidate from now on
	case <-d.link.done:
	}
}

// beginCampaign reports whether nothing has happened since the others were asked. It can do without spare votes.
func (d *detector) beginCampaign(r *raft.Raft, term uint64, spare int, broken <-chan struct{}) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-broken:
		return false
	default:
	}
	if r.State() != raft.Follower || r.CurrentTerm() != term {
		return false
	}
	d.promise.give(d.id, d.promiseTimeLocked())
	d.promise.campaigning, d.promise.spare, d.promise.refusals = true, spare, 0
	return true
}

// electorate finds the other voters without the dead leader, this server's rank among those left
// (by id), and the number of all voters. It returns false if this server has no vote.
func (d *detector) electorate(
	leader raft.ServerAddress,
) (others []raft.Server, rank, voters int, ok bool) {
	for _, s := range d.link.servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		switch {
		case s.ID == d.id:
			ok = true
		case s.Address != leader:
			others = append(others, s)
			if ranksBefore(s.ID, d.id) {
				rank++
			}
		}
	}
	return others, rank, voters, ok
}

// ranksBefore is the order in which servers with equal logs campaign.
func ranksBefore(a, b raft.ServerID) bool { return ParseRaftID(a) < ParseRaftID(b) }

// setSuspect notes that the leader of a term is suspected, and returns the time between two ranks.
func (d *detector) setSuspect(leader raft.ServerAddress, term uint64) (stagger time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.suspect, d.term, d.until = leader, term, time.Now().Add(suspectFor)
	for _, s := range d.link.servers() {
		if s.Address == leader {
			d.promise.release(s.ID) // it was given when that one campaigned
		}
	}
	return staggerMin + 2*d.trip
}

// suspects reports whether this server suspects the leader that it follows.
func (d *detector) suspects(r *raft.Raft, leader raft.ServerAddress) bool {
	d.mu.Lock()
	known := d.suspect == leader && d.term == r.CurrentTerm() && time.Now().Before(d.until)
	d.mu.Unlock()
	return known || d.silent(r)
}

// promiseTimeLocked is how long a campaign may take.
func (d *detector) promiseTimeLocked() time.Duration {
	return min(suspectFor, promiseMin+promiseSyncs*d.syncs()+promiseTrips*d.trip)
}

func (d *detector) header() raft.RPCHeader {
	return raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax,
		ID:              []byte(d.id),
		Addr:            []byte(d.net.LocalAddr()),
	}
}
