package consensus

import (
	"errors"
	"fmt"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/raftlogger"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
)

// electionGate is the transport as raft sees it: without the others' pre-votes no server campaigns.
type electionGate struct {
	*transport.Transport
	mayCampaign func() bool
}

// errMayNotCampaign is why a server does not campaign.
var errMayNotCampaign = errors.New("this server's log has refused a write; it does not campaign")

// RequestPreVote implements raft.WithPreVote.
func (g *electionGate) RequestPreVote(id raft.ServerID, target raft.ServerAddress,
	req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	if !g.mayCampaign() {
		return errMayNotCampaign
	}
	return g.Transport.RequestPreVote(id, target, req, resp)
}

// joinEnsemble lets the others connect, as members of the same ensemble.
func (n *Node) joinEnsemble(id storage.Identity) {
	n.ensemble.SetIdentity(id)
	n.mux.SetIdentity(id.Ensemble, uint64(id.Server))
}

// startRaft starts raft as a member of the ensemble.
func (n *Node) startRaft(id storage.Identity) error {
	if err := n.founder.Plant(&id); err != nil {
		return fmt.Errorf("starting raft: %w", err)
	}
	n.joinEnsemble(id)
	n.fsm.machine = state.New()
	n.cfg.Handler.BeginApply()
	n.cfg.Handler.StateReplaced(n.fsm.machine)
	n.cfg.Handler.EndApply()
	stable, err := n.disk.Stable()
	if err != nil {
		return fmt.Errorf("starting raft: %w", err)
	}
	r, err := raft.NewRaft(n.raftConfig(), n.fsm, n.disk.Log(), stable, n.cfg.Storage.Snapshots,
		&electionGate{n.transport, n.disk.MayCampaign})
	if err != nil {
		return fmt.Errorf("starting raft: %w", err)
	}
	if !n.takeRaft(r) {
		return errors.Join(forward.ErrStopped, r.Shutdown().Error())
	}
	n.tasks.Go(func() {
		if err := noteLogged(n); err != nil && n.ctx.Err() == nil {
			n.logger.Warn("looking for the other servers' addresses in the log failed", "error", err)
		}
	})
	n.tasks.Go(n.watchLeadership)
	n.tasks.Go(n.snapshots.run)
	n.tasks.Go(n.forwarder.Accept)
	n.tasks.Go(func() { n.forwarder.Run(n.ctx) })
	n.tasks.Go(func() { n.check.Run(n.ctx) })
	n.tasks.Go(func() { n.check.ComputeDigests(n.ctx) })
	n.tasks.Go(func() { n.disk.WatchFiles(n.ctx) })
	if n.cfg.Publish != nil {
		// It is applied when this server has caught up with what the ensemble has noted.
		m := *n.cfg.Publish
		m.MinLevel, m.MaxLevel = state.MinLevel, state.MaxLevel
		m.Key = n.cfg.Keys.Own()
		n.tasks.Go(func() { n.publish(m) })
	}
	n.founder.Start()
	return nil
}

// takeRaft makes raft that of the node, unless Close has begun: that would not stop it.
func (n *Node) takeRaft(r *raft.Raft) bool {
	n.starting.Lock()
	defer n.starting.Unlock()
	if n.ctx.Err() != nil {
		return false
	}
	n.raft = r
	n.transport.Attach(r)
	n.disk.Attach(r)
	n.ensemble.Start(r)
	close(n.ready)
	return true
}

func (n *Node) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = transport.RaftID(uint64(n.cfg.ID))
	timeout := n.cfg.ElectionTimeout
	if n.cfg.standalone() {
		timeout = min(timeout, loneElection)
	}
	c.HeartbeatTimeout, c.ElectionTimeout = timeout, timeout
	// No read relies on the lease; a longer one spares an overloaded leader.
	c.LeaderLeaseTimeout = timeout * 3 / 4
	if !n.cfg.NoPush {
		// raft sends a quiet follower how far the log is committed this often. The
		// transport has done so at once (push.go), and repeats a request that
		// failed (retry.go); what is left for raft are its own
		// entries, which no client waits for, and a push that was lost with its
		// connection. Idle servers have less to do the rarer it is.
		c.CommitTimeout = max(c.CommitTimeout, timeout/2)
	}
	c.TrailingLogs = n.cfg.TrailingLogs
	c.SnapshotThreshold = 1 << 17 // takeSnapshots asks earlier
	c.NoLegacyTelemetry = true
	c.Logger = raftlogger.New(n.ctx, n.logger, "raft")
	return c
}

// keyIncarnation is where the last incarnation is kept.
var keyIncarnation = []byte("zk-lite.incarnation")

// nextIncarnation numbers this server's starts, so that commands of an earlier
// one differ from those of this one. It is the wall clock's milliseconds,
// so that an observer that has lost its disk does not take a number that it had
// before; advanceIncarnation takes care of a clock that is behind. It returns the former one, too; 0: none.
func nextIncarnation(s raft.StableStore) (last, next uint64, err error) {
	last, err = s.GetUint64(keyIncarnation)
	if err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return 0, 0, fmt.Errorf("reading the incarnation: %w", err)
	}
	next = max(last+1, uint64(time.Now().UnixMilli()))
	if err := s.SetUint64(keyIncarnation, next); err != nil {
		return 0, 0, fmt.Errorf("writing the incarnation: %w", err)
	}
	return last, next, nil
}

// advanceIncarnation begins a later incarnation than all of this server that the log contains. The disk is not waited
// for: after a crash the same would happen again.
func (f *fsm) advanceIncarnation() {
	n := f.n
	known := f.machine.Incarnation(n.cfg.ID)
	if known <= n.queue.OriginApplying().Incarnation {
		return
	}
	n.logger.Warn("the log contains a newer incarnation of this server; its disk or clock was reset",
		"known", known, "this", n.queue.OriginApplying().Incarnation)
	n.queue.Renumber(known + 1)
	n.tasks.Go(func() {
		if err := n.cfg.Storage.Stable.SetUint64(keyIncarnation, known+1); err != nil {
			n.logger.Error("writing the incarnation failed", "error", err)
		}
	})
}

// keyLevel is where the ensemble's level is kept, for the start of a release that does not speak it. The log has it,
// too, but is applied only when a leader is heard.
var keyLevel = []byte("zk-lite.level")

// checkLevel reports that this build does not speak the level of the ensemble to which the data directory belongs.
func (n *Node) checkLevel() error {
	level, err := n.cfg.Storage.Stable.GetUint64(keyLevel)
	switch {
	case errors.Is(err, raftboltdb.ErrKeyNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("reading the ensemble's feature level: %w", err)
	}
	n.fsm.level = state.Level(level)
	n.applied.SetLevel(n.fsm.level)
	return n.applied.Level().Spoken()
}

// publishLevel lets the node's other goroutines see the machine's level. Until it has one, that of before the start
// counts.
func (f *fsm) publishLevel() {
	if level := f.machine.Level(); level != 0 {
		f.n.applied.SetLevel(level)
	}
}

// keepLevel keeps the machine's level for the next start. The applying goroutine calls it, without the view lock.
// What a failure costs is that a wrong release is refused later, by the log.
func (f *fsm) keepLevel() {
	level := f.machine.Level()
	if level == f.level || level == 0 {
		return
	}
	f.level = level
	f.n.logger.Info("the ensemble's feature level", "level", level)
	if err := f.n.cfg.Storage.Stable.SetUint64(keyLevel, uint64(level)); err != nil {
		f.n.logger.Error("writing the ensemble's feature level failed", "error", err)
	}
}
