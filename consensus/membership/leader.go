package membership

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
)

const (
	// changeTimeout is how long raft may take for a change, less than a
	// control connection lasts.
	changeTimeout = controlTimeout * 2 / 3
	// caughtUp is by how many entries a server may be behind when it gets a vote:
	// what it makes up for in milliseconds.
	caughtUp = 256
)

// leader does what only the leader can.
type leader struct {
	cfg           *Config
	control       *control
	configuration *configuration
	enrolling     chan struct{}                           // has room for one server that joins: a token is used once
	plans         atomic.Pointer[map[state.ServerID]plan] // of RunAutopilot; nil: it does not run
	reconfig      atomic.Pointer[state.Reconfiguration]   // as applied here; nil: none has begun
	leaving       atomic.Pointer[map[state.ServerID]bool] // as applied here
	doing         atomic.Pointer[string]                  // what is done of reconfig; nil: nothing
	reconfigured  chan struct{}                           // capacity 1: reconfig has changed
}

// leads returns raft if this server leads. Raft itself refuses what it is asked when that is no longer
// so.
func (l *leader) leads() (*raft.Raft, error) {
	r := l.configuration.raft.Load()
	if r == nil || l.cfg.Leadership.Now().Leader != l.cfg.Self {
		return nil, errNotLeader
	}
	return r, nil
}

// executeAsLeader does on the leader what was asked for.
func (l *leader) executeAsLeader(req *Request) error {
	r, err := l.leads()
	if err != nil {
		return err
	}
	id, addr := transport.RaftID(uint64(req.Server)), raft.ServerAddress(AddressOf(req.Server))
	switch req.Op {
	case controlAdd:
		if err := l.checkReconfiguring(); err != nil {
			return err
		}
		if l.configuration.suffrage(req.Server) != NotMember {
			return nil // and a voter keeps its vote
		}
		return leaderError(l.answerOf(r.AddNonvoter(id, addr, 0, changeTimeout)))
	case controlTransfer:
		switch req.Server {
		case state.NoServer:
			return l.transferAwayAsLeader(req.Leader)
		case l.cfg.Self:
			return nil
		}
		return transferError(l.transfer(func() raft.Future { return r.LeadershipTransferToServer(id, addr) }))
	case controlCheckStop:
		return l.retryCheck(func() error { return l.checkWithout(req.Server, l.configuration.Voters()) })
	}
	if err := l.checkReconfiguring(); err != nil {
		return err
	}
	return l.removeAsLeader(r, req)
}

// transferAwayAsLeader hands leadership to any other voter, unless the server that
// should give it up has lost it already.
func (l *leader) transferAwayAsLeader(from state.ServerID) error {
	if from != l.cfg.Self {
		return nil
	}
	err := l.retryCheck(func() error {
		if voting, _ := l.cfg.Streams.Count(l.configuration.Voters()); voting == 0 {
			return fmt.Errorf("%w: no other voter is connected; start another voter first", ErrTooFew)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return transferError(l.Transfer())
}

// transferError has the leader, whichever server that is then, asked again: raft gives the
// next leader one election timeout, which a busy machine may need longer than.
func transferError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errNotLeader, err)
}

func (l *leader) removeAsLeader(r *raft.Raft, req *Request) error {
	suffrage := l.configuration.suffrage(req.Server)
	if suffrage == NotMember {
		return nil // it was removed already
	}
	if suffrage == Voter && !req.Force {
		if err := l.canSpare(req.Server); err != nil {
			return err
		}
	}
	if req.Server == l.cfg.Self {
		// The next leader does it, so that the ensemble is not without one for a while.
		if err := l.Transfer(); err != nil {
			return transferError(err)
		}
		return errNotLeader
	}
	return leaderError(l.answerOf(r.RemoveServer(transport.RaftID(uint64(req.Server)), 0, changeTimeout)))
}

// demote takes a voter's vote.
func (l *leader) demote(r *raft.Raft, id state.ServerID) error {
	if err := l.canSpare(id); err != nil {
		return err
	}
	return leaderError(l.answerOf(r.DemoteVoter(transport.RaftID(uint64(id)), 0, changeTimeout)))
}

// canSpare reports that without the vote of a server too few would be connected.
func (l *leader) canSpare(id state.ServerID) error {
	return l.retryCheck(func() error {
		left := l.configuration.Voters()
		delete(left, id)
		return l.checkWithout(id, left)
	})
}

// retryCheck repeats a check for a while: a leader that has just been
// elected has not been found by all others yet.
func (l *leader) retryCheck(check func() error) error {
	err := check()
	for wait := retryMin; err != nil && wait < changeTimeout/2; wait *= 2 {
		select {
		case <-time.After(wait):
		case <-l.cfg.Context.Done():
			return context.Cause(l.cfg.Context)
		}
		err = check()
	}
	return err
}

// checkWithout reports that, without a server, the voters that are connected would
// be no majority of these.
func (l *leader) checkWithout(id state.ServerID, voters map[state.ServerID]bool) error {
	connected, _ := l.cfg.Streams.Count(voters)
	if voters[l.cfg.Self] {
		connected++
	}
	if voters[id] { // it is connected, or it is this server
		connected--
	}
	if need := len(voters)/2 + 1; connected < need {
		return fmt.Errorf("%w: if server %d stops, %d of %d voters are connected, and %d are needed; "+
			"start another voter first", ErrTooFew, id, connected, len(voters), need)
	}
	return nil
}

// leaderError marks the errors after which another leader has to be asked.
func leaderError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", errNotLeader, err)
	}
	return err
}

// Transfer hands leadership to another voter, if this server has it and one is
// connected. The last server to stop has no successor, and need not wait for one.
func (l *leader) Transfer() error {
	r, err := l.leads()
	if err != nil {
		return nil
	}
	if voting, _ := l.cfg.Streams.Count(l.configuration.Voters()); voting == 0 {
		return nil
	}
	return l.transfer(r.LeadershipTransfer)
}

// transfer starts a transfer of leadership and waits for its end. raft gives it one
// election timeout, but may also forget it, as one that ends while the leader steps
// down (hashicorp/raft issue 696): then it would wait forever.
func (l *leader) transfer(start func() raft.Future) error {
	l.cfg.Transport.StopRetrying()
	ended := make(chan error, 1)
	go func() { ended <- start().Error() }() // Close does not wait for it, for it may never end
	late := time.NewTimer(max(changeTimeout, 2*l.cfg.ElectionTimeout))
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return errors.New("raft does not report how the transfer has ended")
	case <-l.cfg.Context.Done():
		return context.Cause(l.cfg.Context)
	}
}

// answerOf waits for raft's answer to what becomes an entry. raft gives none to entries that wait
// for the state machine when it shuts down, so what Close waits for must not wait for raft alone.
func (l *leader) answerOf(f raft.Future) error {
	answer := make(chan error, 1)
	go func() { answer <- f.Error() }() // Close does not wait for it
	select {
	case err := <-answer:
		return err
	case <-l.cfg.Context.Done():
		return raft.ErrRaftShutdown
	}
}
