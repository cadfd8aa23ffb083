package consensus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/znode"
)

// A server joins a running ensemble in three steps: raft takes it in without a
// vote; the log tells all servers where it is; and when it has caught up, the
// leader gives it a vote by itself. So an ensemble never waits for a server that
// has nothing yet. Any server takes a request, and passes it to the leader on a
// control connection.

// Requests of controlRequest.Op.
const (
	controlAdd      = "add"
	controlRemove   = "remove"
	controlTransfer = "transfer"
	controlSpare    = "spare"
)

const (
	// membershipTimeout is how long raft may take for a change, less than a
	// control connection lasts.
	membershipTimeout = controlTimeout * 2 / 3
	// caughtUp is by how many entries a server may be behind when it gets a vote:
	// what it makes up for in milliseconds.
	caughtUp = 256
)

// The errors of changes to the ensemble.
var (
	// ErrNoMember says that a server is not in the ensemble, or not as a voter.
	ErrNoMember = errors.New("there is no such server in the ensemble")
	// ErrStandalone says that a lone server without a peer port was asked.
	ErrStandalone = errors.New("this server stands alone: only an ensemble with a peer port can change")
	// ErrTooFew says that a change would leave no connected majority.
	ErrTooFew = errors.New("too few voters would be connected")
	// ErrElsewhere says that a server to be added is a member at another address,
	// and connected: to believe the new one would cost the ensemble a server.
	ErrElsewhere = errors.New("there is such a server, at another address")
)

// errNotLeader says that the leader has to be asked again: another server leads, or
// none, or it could not do it just now.
var errNotLeader = errors.New("no leader has carried it out")

// AddServer takes a server into the running ensemble: m.ID and m.Addr must be
// set, and what clients shall see of it. If m.Vote, it votes as soon as it has
// caught up. It may be started before or after. To call it again is harmless, and
// corrects the address of a server that is not connected.
//
// Errors: ErrStandalone; ErrElsewhere; what is wrong with m; ctx's and ErrStopped, and then the
// outcome is unknown.
func (n *Node) AddServer(ctx context.Context, m state.Member) error {
	switch {
	case n.cfg.standalone():
		return ErrStandalone
	case m.ID < 1 || m.ID > state.MaxServerID:
		return fmt.Errorf("server id %d is not between 1 and %d", m.ID, state.MaxServerID)
	case m.Addr == "":
		return fmt.Errorf("the address of server %d's peer port is missing", m.ID)
	}
	if err := n.checkPlace(ctx, &m); err != nil {
		return fmt.Errorf("adding server %d: %w", m.ID, err)
	}
	if err := n.askLeader(ctx, controlRequest{Op: controlAdd, Server: m.ID}); err != nil {
		return fmt.Errorf("adding server %d: %w", m.ID, err)
	}
	w := &commitment{done: make(chan struct{})}
	if err := n.Propose(&state.Command{Op: state.OpMember, Member: m}, w); err != nil {
		return fmt.Errorf("adding server %d: %w", m.ID, err)
	}
	if err := n.committed(ctx, w); err != nil {
		return fmt.Errorf("adding server %d: %w", m.ID, err)
	}
	return nil
}

// checkPlace reports, with ErrElsewhere, that a server is connected whose address is
// not the given one.
func (n *Node) checkPlace(ctx context.Context, m *state.Member) error {
	have, in := n.Members()[m.ID]
	at := have.Addr
	if end := strings.LastIndexByte(have.Peer, ':'); at == "" && end >= 0 {
		at = have.Peer[:end] // as it has published itself, without the election port
	}
	if !in || at == "" || at == m.Addr {
		return nil
	}
	s, err := n.EnsembleStatus(ctx)
	if err != nil {
		return err
	}
	for i := range s.Members {
		if s.Members[i].ID == m.ID && s.Members[i].Connected {
			return fmt.Errorf("%w: it is connected as %s, not %s", ErrElsewhere, at, m.Addr)
		}
	}
	return nil
}

// committed waits for the result of an OpMember.
func (n *Node) committed(ctx context.Context, w *commitment) error {
	select {
	case <-w.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case n.ctx.Err() != nil:
		return fmt.Errorf("%w; whether it has happened is unknown", ErrStopped)
	case w.code != znode.OK: // the command found it removed again
		return ErrNoMember
	}
	return nil
}

// commitment waits for a command's result.
type commitment struct {
	code znode.Error
	done chan struct{}
}

func (c *commitment) Applied(r *state.Result) {
	c.code = r.Code
	close(c.done)
}

// Lost implements Waiter: the command is in the state, unless the node is being closed.
func (c *commitment) Lost() { close(c.done) }

// RemoveServer takes a server out of the ensemble. Unless force is set, it refuses
// if the voters that are connected would be no majority of those left.
//
// Errors: ErrStandalone, ErrNoMember, ErrTooFew; ctx's, and then the outcome is
// unknown.
func (n *Node) RemoveServer(ctx context.Context, id state.ServerID, force bool) error {
	err := ErrNoMember
	switch {
	case n.cfg.standalone():
		err = ErrStandalone
	case n.standing(id) != standsOutside:
		err = n.askLeader(ctx, controlRequest{Op: controlRemove, Server: id, Force: force})
	}
	if err != nil {
		return fmt.Errorf("removing server %d: %w", id, err)
	}
	return nil
}

// TransferTo hands leadership to a voter, or with 0 from this ensemble's leader to
// whichever voter is most up to date.
//
// Errors: ErrStandalone, ErrNoMember; ctx's; that it could not catch up in time.
func (n *Node) TransferTo(ctx context.Context, id state.ServerID) error {
	err := ErrNoMember
	switch {
	case n.cfg.standalone():
		err = ErrStandalone
	case id == 0:
		err = n.transferAway(ctx)
	case n.standing(id) == standsVoter:
		err = n.askLeader(ctx, controlRequest{Op: controlTransfer, Server: id})
	}
	if err != nil {
		return fmt.Errorf("handing over leadership: %w", err)
	}
	return nil
}

// transferAway takes leadership from the server that has it now. The request names
// that server: a repetition whose first answer was lost must not take it from the
// next one too.
func (n *Node) transferAway(ctx context.Context) error {
	for wait := redialMin; ; wait = min(2*wait, redialMax) {
		if leader := n.leader(); leader != 0 {
			return n.askLeader(ctx, controlRequest{Op: controlTransfer, Leader: leader})
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), errNotLeader)
		case <-n.ctx.Done():
			return ErrStopped
		case <-time.After(wait):
		}
	}
}

// leader is who leads as far as this server knows, or 0.
func (n *Node) leader() state.ServerID {
	select {
	case <-n.ready:
		_, id := n.raft.LeaderWithID()
		return state.ServerID(transport.ParseRaftID(id))
	default:
		return 0
	}
}

// CheckStop reports, with ErrTooFew, that the ensemble would lose its majority if this
// server stopped now.
//
// Errors: ErrTooFew; ctx's.
func (n *Node) CheckStop(ctx context.Context) error {
	if n.cfg.standalone() {
		return fmt.Errorf("%w: this server stands alone", ErrTooFew)
	}
	return n.askLeader(ctx, controlRequest{Op: controlSpare, Server: n.cfg.ID})
}

// Members returns what the ensemble knows of its servers, with those that have
// not published anything.
func (n *Node) Members() map[state.ServerID]state.Member {
	all := map[state.ServerID]state.Member{}
	var known map[state.ServerID]state.Member
	if p := n.members.Load(); p != nil {
		known = *p
	}
	for id, voter := range n.configured() {
		m := known[id]
		m.ID, m.Voter = id, voter
		all[id] = m
	}
	return all
}

// configured is raft's latest configuration, committed or not: the servers, and
// whether they vote.
func (n *Node) configured() map[state.ServerID]bool {
	select {
	case <-n.ready:
		return votersOf(n.raft.GetConfiguration().Configuration().Servers)
	default:
		return nil
	}
}

func (n *Node) standing(id state.ServerID) standing {
	switch voter, in := n.configured()[id]; {
	case !in:
		return standsOutside
	case voter:
		return standsVoter
	default:
		return standsOther
	}
}

// askLeader has the leader do something, whoever that is, until ctx ends. All
// requests can be repeated.
func (n *Node) askLeader(ctx context.Context, req controlRequest) error {
	wait := redialMin
	for {
		err := n.askLeaderOnce(req)
		if !errors.Is(err, errNotLeader) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-n.ctx.Done():
			return ErrStopped
		case <-time.After(wait):
			wait = min(2*wait, redialMax)
		}
	}
}

func (n *Node) askLeaderOnce(req controlRequest) error {
	leader := n.leader()
	switch leader {
	case 0:
		return errNotLeader
	case n.cfg.ID:
		return n.lead(&req)
	}
	reply, err := n.ask(leader, req)
	switch {
	case err == nil:
		return nil
	case reply.TooFew:
		return fmt.Errorf("%w: %w", ErrTooFew, err)
	case reply.Error != "" && !reply.NotLeader:
		return err
	default:
		return fmt.Errorf("%w: %w", errNotLeader, err)
	}
}

// serveMembers does what another server asks of the leader.
func (n *Node) serveMembers(req *controlRequest, reply *controlReply) {
	var err error
	switch req.Op {
	case controlAdd, controlRemove, controlTransfer, controlSpare, controlSurvey:
		select {
		case <-n.ready:
			if req.Op == controlSurvey {
				reply.Survey, err = n.survey()
			} else {
				err = n.lead(req)
			}
		default:
			err = errNotLeader
		}
	default:
		err = fmt.Errorf("unknown request %q", req.Op)
	}
	if err != nil {
		reply.Error = err.Error()
		reply.NotLeader, reply.TooFew = errors.Is(err, errNotLeader), errors.Is(err, ErrTooFew)
	}
}

// lead does on the leader what was asked for.
func (n *Node) lead(req *controlRequest) error {
	if n.raft.State() != raft.Leader {
		return errNotLeader
	}
	id, addr := transport.RaftID(uint64(req.Server)), raft.ServerAddress(addressOf(req.Server))
	switch req.Op {
	case controlAdd:
		if n.standing(req.Server) != standsOutside {
			return nil // and a voter keeps its vote
		}
		return leaderError(n.answerOf(n.raft.AddNonvoter(id, addr, 0, membershipTimeout)))
	case controlTransfer:
		switch req.Server {
		case 0:
			return n.leadTransferAway(req.Leader)
		case n.cfg.ID:
			return nil
		}
		return transferError(n.transfer(func() raft.Future {
			return n.raft.LeadershipTransferToServer(id, addr)
		}))
	case controlSpare:
		return n.patiently(func() error { return n.checkWithout(req.Server, n.voters()) })
	}
	return n.leadRemoval(req, id)
}

// leadTransferAway hands leadership to any other voter, unless the server from which
// it is to be taken has lost it already.
func (n *Node) leadTransferAway(from state.ServerID) error {
	if from != n.cfg.ID {
		return nil
	}
	err := n.patiently(func() error {
		if voting, _ := n.streams.count(n.voters()); voting == 0 {
			return fmt.Errorf("%w: no other voter is connected; bring one back first", ErrTooFew)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return transferError(n.Transfer())
}

// transferError has the leader, whoever that is then, asked again: raft gives the
// next leader one election timeout, which a busy machine may need longer than.
func transferError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errNotLeader, err)
}

func (n *Node) leadRemoval(req *controlRequest, id raft.ServerID) error {
	at := n.standing(req.Server)
	if at == standsOutside {
		return nil // it was removed already
	}
	if at == standsVoter && !req.Force {
		err := n.patiently(func() error {
			left := n.voters()
			delete(left, req.Server)
			return n.checkWithout(req.Server, left)
		})
		if err != nil {
			return err
		}
	}
	if req.Server == n.cfg.ID {
		// The next leader does it, so that nobody is without one for a while.
		if err := n.Transfer(); err != nil {
			return transferError(err)
		}
		return errNotLeader
	}
	return leaderError(n.answerOf(n.raft.RemoveServer(id, 0, membershipTimeout)))
}

// patiently checks again and again for a while: a leader that has just been
// elected has not been found by all others yet.
func (n *Node) patiently(check func() error) error {
	err := check()
	for wait := redialMin; err != nil && wait < membershipTimeout/2; wait *= 2 {
		select {
		case <-time.After(wait):
		case <-n.ctx.Done():
			return ErrStopped
		}
		err = check()
	}
	return err
}

// checkWithout reports that, without a server, the voters that are connected would
// be no majority of these.
func (n *Node) checkWithout(id state.ServerID, voters map[state.ServerID]bool) error {
	connected, _ := n.streams.count(voters)
	if voters[n.cfg.ID] {
		connected++
	}
	if voters[id] { // it is connected, or it is this server
		connected--
	}
	if need := len(voters)/2 + 1; connected < need {
		return fmt.Errorf("%w: without server %d, %d of %d, and %d are needed; "+
			"bring another back first", ErrTooFew, id, connected, len(voters), need)
	}
	return nil
}

// leaderError tells apart what another leader has to be asked for.
func leaderError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", errNotLeader, err)
	}
	return err
}

// promote runs as long as the node: while it leads, it gives those a vote that
// shall have one and have caught up.
func (n *Node) promote() {
	look := time.NewTicker(n.cfg.ElectionTimeout)
	defer look.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-look.C:
		}
		if n.raft.State() != raft.Leader {
			continue
		}
		for id, m := range n.Members() {
			if m.Voter || !m.Vote {
				continue
			}
			if err := n.promoteOne(id); err != nil {
				n.logger.Info("a server has no vote yet", "server", id, "reason", err)
			}
		}
	}
}

func (n *Node) promoteOne(id state.ServerID) error {
	reply, err := n.ask(id, controlRequest{Op: "who"})
	if err != nil {
		return err
	}
	if reply.Ensemble == "" {
		// With a vote it would be taken for a voter that has lost its disk.
		return errors.New("it has not joined yet")
	}
	if have := n.applied.Load(); reply.Applied+caughtUp < have {
		return fmt.Errorf("it has applied %d entries of %d", reply.Applied, have)
	}
	addr := raft.ServerAddress(addressOf(id))
	err = n.answerOf(n.raft.AddVoter(transport.RaftID(uint64(id)), addr, 0, membershipTimeout))
	if err != nil {
		return err
	}
	n.logger.Info("a server has caught up and votes from now on", "server", id)
	return nil
}
