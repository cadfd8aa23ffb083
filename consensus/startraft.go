package consensus

import (
	"errors"
	"fmt"

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
	for _, task := range []func(){
		n.watchLeadership, n.forwarder.Accept, n.takeSnapshots, n.check.run, n.check.computeDigests,
	} {
		n.tasks.Go(task)
	}
	n.tasks.Go(func() { n.forwarder.Run(n.ctx) })
	if n.cfg.Publish != nil {
		// It is applied when this server has caught up with what the ensemble has noted.
		m := *n.cfg.Publish
		m.MinLevel, m.MaxLevel = state.MinLevel, state.MaxLevel
		m.Key = n.cfg.Keys.Own()
		n.tasks.Go(func() { n.publish(m) })
	}
	n.ensemble.Start()
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
	n.ensemble.Attach(r)
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

type ignore struct{}

func (ignore) Applied(*state.Result) {}
func (ignore) Lost()                 {}
