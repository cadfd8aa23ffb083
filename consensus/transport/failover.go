package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Fast failover: when a process dies its kernel closes its connections and refuses new ones. A
// follower whose inbound raft connection ends checks whether the leader's address refuses. If it
// does, and a majority of the voters (itself included) finds the same, the follower starts the election
// at once instead of after the heartbeat timeout.
//
// Steps: (1) any inbound raft connection ended and this server is a follower of another;
// (2) probe the leader's address: refused means dead; an accepted connection that stays open for
// probeRead means alive; anything else is left to raft's timers; (3) only voters act, at most once
// in a term, the n-th of them n*Stagger later; (4) ask the other voters by RequestPreVote: a server
// that saw the same leader dead grants it here if the asker's log is not older than its own, every
// other server lets raft answer, and raft refuses while it has a leader; (5) with a majority, hand
// raft a TimeoutNow, as the leader would in a leadership transfer.
//
// Why it is safe: raft's safety never depends on when a server campaigns. TimeoutNow only starts an
// ordinary election early; terms, persisted votes and the comparison of logs are raft's own. The
// pre-vote that is granted here is advice to a server that asked for advice, and persists nothing.
// INVARIANT: no false finding can lose or fork an entry; the worst is a needless election, and it
// takes a majority with the same false finding. What early elections do void is a read lease that
// assumes that followers refuse votes while they hear from the leader: nothing here may read by
// LeaderLeaseTimeout.
//
// timeoutNow in raft checks neither state nor suffrage (a leader would step down, a non-voter
// would campaign), hence the checks of step 3 here.

// DefaultStagger is long enough for one campaign of healthy servers (10 ms) with some reserve.
const DefaultStagger = 20 * time.Millisecond

const (
	probeTimeout = 200 * time.Millisecond // for a connect; a living host answers far sooner
	probeRead    = 10 * time.Millisecond  // a dying process may accept, but does not keep the connection
	probeTries   = 3
	campaignTry  = 10                     // with retryPause: 50 ms so that the others notice too
	retryPause   = 5 * time.Millisecond   //
	votePause    = 20 * time.Millisecond  // after a vote for another server, which may win meanwhile
	askTimeout   = 100 * time.Millisecond // for the pre-votes of one try
	suspectTTL   = 2 * time.Second        // how long a finding counts when others ask
)

type detector struct {
	// set at construction
	link    *raftLink
	net     *raft.NetworkTransport // for pre-votes
	mux     *mux.Mux               // for probes
	id      raft.ServerID
	stagger time.Duration
	wake    chan struct{} // room for one

	// own synchronisation
	voted atomic.Int64 // when this server last voted for another, Unix nanoseconds

	lastTerm uint64 // the last term acted in; the loop's own

	mu      sync.Mutex // protects the fields below
	suspect raft.ServerAddress
	until   time.Time              // the suspicion counts until then
	asking  map[raft.ServerID]bool // a pre-vote is on its way
}

func newDetector(
	link *raftLink, id raft.ServerID, stagger time.Duration, m *mux.Mux, net *raft.NetworkTransport,
) *detector {
	d := &detector{
		link: link, net: net, mux: m, id: id, stagger: stagger,
		wake: make(chan struct{}, 1), asking: map[raft.ServerID]bool{},
	}
	if d.stagger == 0 {
		d.stagger = DefaultStagger
	}
	return d
}

// connEnded is the mux's report that an inbound raft connection has ended. It never blocks.
func (d *detector) connEnded() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *detector) loop() {
	for {
		select {
		case <-d.link.done:
			return
		case <-d.wake:
		}
		r := d.link.raft.Load()
		if r == nil {
			continue
		}
		leader := d.leaderElsewhere(r)
		if leader == "" {
			continue
		}
		d.link.count.probes.Add(1)
		if d.dead(leader) {
			d.link.count.deaths.Add(1)
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

// dead reports whether addr refuses connections.
func (d *detector) dead(addr raft.ServerAddress) bool {
	for range probeTries {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		c, err := d.mux.DialBare(ctx, string(addr))
		cancel()
		if errors.Is(err, syscall.ECONNREFUSED) {
			return true
		}
		if err != nil {
			return false // unreachable or slow: raft's timers decide
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

// campaign starts an election to replace the dead leader, if a majority finds it dead too.
func (d *detector) campaign(r *raft.Raft, leader raft.ServerAddress) {
	term := r.CurrentTerm()
	if term == d.lastTerm {
		return
	}
	d.setSuspect(leader)
	others, rank, voters, ok := d.electorate(leader)
	if !ok {
		return
	}
	start := time.Now()
	if rank > 0 && !d.link.sleep(time.Duration(rank)*d.stagger) {
		return
	}
	for range campaignTry {
		if now := d.leaderElsewhere(r); r.State() != raft.Follower || now != "" && now != leader {
			return // another server has won, or campaigns
		}
		pause := retryPause
		if d.voted.Load() > start.UnixNano() {
			pause, start = votePause, time.Now()
		} else if d.majorityAgrees(r, others, voters/2+1) {
			d.lastTerm = term
			d.link.logger.Info("the leader's process has ended; starting an election",
				"leader", leader, "term", term, "rank", rank)
			d.link.count.elections.Add(1)
			d.link.deliver(raft.RPC{
				Command:  &raft.TimeoutNowRequest{RPCHeader: d.header()},
				RespChan: make(chan raft.RPCResponse, 1),
			})
			return
		}
		if !d.link.sleep(pause) {
			return
		}
	}
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
			if s.ID < d.id {
				rank++
			}
		}
	}
	return others, rank, voters, ok
}

func (d *detector) setSuspect(leader raft.ServerAddress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.suspect, d.until = leader, time.Now().Add(suspectTTL)
}

func (d *detector) suspects(leader raft.ServerAddress) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.suspect == leader && time.Now().Before(d.until)
}

func (d *detector) header() raft.RPCHeader {
	return raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax,
		ID:              []byte(d.id),
		Addr:            []byte(d.net.LocalAddr()),
	}
}
