package membership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/znode"
)

// ErrReconfiguring reports that a client's reconfig is being carried out, and no other change is made until its end.
var ErrReconfiguring = errors.New("a reconfiguration is in progress")

// leaveTime is for how long servers that leave stay after the end of a reconfiguration, so that they hear of it, and
// their clients get their answers and learn who is left.
const leaveTime = 2 * time.Second

// SetReconfiguration notes the reconfiguration that has begun; nil: none. The leader carries it out. It also notes the
// servers that leave, which the leader removes; the map must not change afterwards.
func (l *leader) SetReconfiguration(x *state.Reconfiguration, leaving map[state.ServerID]bool) {
	l.leaving.Store(&leaving)
	if l.reconfig.Swap(x) == x {
		return
	}
	select {
	case l.reconfigured <- struct{}{}:
	default:
	}
}

// checkReconfiguring returns ErrReconfiguring if there is one.
func (l *leader) checkReconfiguring() error {
	if l.reconfig.Load() != nil {
		return ErrReconfiguring
	}
	return nil
}

// reconfigure carries a reconfiguration out, until it is done or this server no longer leads.
func (l *leader) reconfigure(ctx context.Context, x *state.Reconfiguration) {
	// Another leader may have ended it, in an entry that has not been applied here.
	if err := l.propose(ctx, &state.Command{Op: state.OpSync}); err != nil {
		return // RunAutopilot calls it again
	}
	defer l.doing.Store(nil)
	s := scene{Reconfiguration: x, self: l.cfg.Self, undo: znode.OK}
	voters := s.voters()
	last, said := time.Now(), move{}
	for ctx.Err() == nil && l.reconfig.Load() == x {
		s.members = l.configuration.Members()
		s.now = l.configuration.configured()
		s.sights = l.seeOthers(ctx, func(m state.Member) bool { return voters[m.ID] })
		s.waited = time.Since(last)
		m := s.next()
		text := m.String()
		l.doing.Store(&text)
		l.noteMove(m, said)
		said = m
		err := error(nil)
		switch m.kind {
		case moveWait:
			err = errNotLeader // look again
		case moveUndo:
			s.undo = m.code
		default:
			err = l.carryOutMove(ctx, x, m)
		}
		if err == nil {
			last = time.Now()
			continue
		}
		if m.kind != moveWait {
			l.cfg.Logger.Info("a step of a reconfiguration is tried again: "+string(m.kind), "server", m.server,
				"error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryMax):
		}
	}
}

// removeLeaving removes servers that have left for leaveTime; since is when it has first seen them.
func (l *leader) removeLeaving(since map[state.ServerID]time.Time) {
	leaving := l.leaving.Load()
	if leaving == nil {
		return
	}
	for id := range since {
		if !(*leaving)[id] {
			delete(since, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(*leaving)) {
		first, seen := since[id]
		switch {
		case !seen:
			since[id] = time.Now()
		case time.Since(first) >= leaveTime:
			if err := l.carryOutMove(l.cfg.Context, nil, move{kind: moveRemove, server: id}); err != nil {
				l.cfg.Logger.Info("removing a server that leaves is tried again", "server", id, "error", err)
			}
		}
	}
}

// noteMove logs a move that is not the last one again.
func (l *leader) noteMove(m, last move) {
	switch {
	case m == last:
	case m.kind == moveWait:
		l.cfg.Logger.Info("a reconfiguration waits", "reason", m.why)
	case m.kind == moveUndo:
		l.cfg.Logger.Warn("a reconfiguration is undone", "reason", m.why)
	case m.kind == moveAbort && m.why != "":
		l.cfg.Logger.Warn("a reconfiguration ends before its end; the ensemble stays as it is now", "reason", m.why)
	default:
		l.cfg.Logger.Info("a step of a reconfiguration: "+string(m.kind), "server", m.server)
	}
}

// carryOutMove makes a move. Errors: it has to be tried again.
func (l *leader) carryOutMove(ctx context.Context, x *state.Reconfiguration, m move) error {
	r, err := l.leads()
	if err != nil {
		return err
	}
	id, addr := transport.RaftID(uint64(m.server)), raft.ServerAddress(AddressOf(m.server))
	switch m.kind {
	case moveAdd:
		if err := l.addNonvoter(r, m.server); err != nil {
			return err
		}
		return l.locate(ctx, x, m.server)
	case moveLocate:
		return l.locate(ctx, x, m.server)
	case movePromote:
		return l.answerOf(r.AddVoter(id, addr, 0, changeTimeout))
	case moveDemote:
		return l.demote(r, m.server)
	case moveRemove:
		return l.removeAsLeader(r, &Request{Server: m.server})
	case moveHandOver:
		return l.transfer(func() raft.Future { return r.LeadershipTransferToServer(id, addr) })
	case moveFinish:
		return l.end(ctx, state.Reconfig{Step: state.ReconfigFinish, Number: x.Number})
	default: // moveAbort
		return l.end(ctx, state.Reconfig{Step: state.ReconfigAbort, Number: x.Number, Code: m.code})
	}
}

// locate tells all servers where one is.
func (l *leader) locate(ctx context.Context, x *state.Reconfiguration, id state.ServerID) error {
	for _, s := range x.Servers {
		if s.ID == id && s.Peer != "" {
			m := state.Member{ID: id, Peer: s.Peer, Client: s.Client, Addr: s.Addr(), Vote: s.Voter}
			return l.propose(ctx, &state.Command{Op: state.OpMember, Member: m})
		}
	}
	return nil
}

// end ends the reconfiguration, unless another leader has taken over.
func (l *leader) end(ctx context.Context, x state.Reconfig) error {
	return l.propose(ctx, &state.Command{Op: state.OpReconfig, Term: l.cfg.Leadership.Now().Term, Reconfig: &x})
}

// propose has a command carried out.
func (l *leader) propose(ctx context.Context, c *state.Command) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	code, err := l.cfg.Queue.Do(ctx, c)
	if err == nil {
		err = code.Err()
	}
	return err
}
