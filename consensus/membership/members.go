package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// A server joins a running ensemble in three steps: raft takes it in without a
// vote; the log tells all servers where it is; and when it has caught up, the
// leader gives it a vote by itself. So an ensemble never waits for a server that
// has nothing yet. Any server takes a request, and passes it to the leader on a
// control connection.

// AddServer takes a server into the running ensemble: m.ID and m.Addr must be
// set, and what clients shall see of it. If m.Vote, it votes as soon as it has
// caught up. It may be started before or after. To call it again is harmless, and
// corrects the address of a server that is not connected.
//
// Errors: ErrStandalone; ErrReconfiguring; ErrElsewhere; ErrNoLeader; what is wrong with m; ctx's and ErrStopped, and
// then the outcome is unknown.
func (e *Ensemble) AddServer(ctx context.Context, m state.Member) error {
	switch {
	case e.cfg.Standalone:
		return ErrStandalone
	case m.ID > state.MaxServerID:
		return fmt.Errorf("server id %d is not between 0 and %d", m.ID, state.MaxServerID)
	case m.Addr == "":
		return fmt.Errorf("the address of server %d's peer port is missing", m.ID)
	}
	err := e.checkReconfiguring()
	if err == nil {
		err = e.addServer(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("adding server %d: %w", m.ID, err)
	}
	return nil
}

func (e *Ensemble) addServer(ctx context.Context, m state.Member) error {
	if err := e.checkAddress(ctx, &m); err != nil {
		return err
	}
	if err := e.askLeader(ctx, Request{Op: controlAdd, Server: m.ID}); err != nil {
		return err
	}
	code, err := e.cfg.Queue.Do(ctx, &state.Command{Op: state.OpMember, Member: m})
	if err == nil && code != znode.OK { // it was removed again before
		err = ErrNoMember
	}
	return err
}

// checkAddress reports, with ErrElsewhere, that a server is connected whose address is
// not the given one.
func (e *Ensemble) checkAddress(ctx context.Context, m *state.Member) error {
	have, in := e.Members()[m.ID]
	at := have.Addr
	if end := strings.LastIndexByte(have.Peer, ':'); at == "" && end >= 0 {
		at = have.Peer[:end] // as it has published itself, without the election port
	}
	if !in || at == "" || at == m.Addr {
		return nil
	}
	s, err := e.Status(ctx)
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

// RemoveServer takes a server out of the ensemble. Unless force is set, it refuses
// if the voters that are connected would be no majority of those left.
//
// Errors: ErrStandalone, ErrReconfiguring, ErrNoMember, ErrTooFew, ErrNoLeader; ctx's, and then the outcome is
// unknown.
func (e *Ensemble) RemoveServer(ctx context.Context, id state.ServerID, force bool) error {
	err := ErrNoMember
	switch {
	case e.cfg.Standalone:
		err = ErrStandalone
	case e.checkReconfiguring() != nil:
		err = ErrReconfiguring
	case e.suffrage(id) != NotMember:
		err = e.askLeader(ctx, Request{Op: controlRemove, Server: id, Force: force})
	}
	if err != nil {
		return fmt.Errorf("removing server %d: %w", id, err)
	}
	return nil
}

// LeaveOut takes the vote from a voter that was missing when the ensemble was founded; the voter gets it back when it
// has come and has caught up. Until then only its Vote is known. To repeat it is harmless.
func (e *Ensemble) LeaveOut(id state.ServerID) error {
	ctx, cancel := context.WithTimeout(e.cfg.Context, controlTimeout)
	defer cancel()
	if _, err := e.cfg.Queue.Do(ctx, &state.Command{Op: state.OpSync}); err != nil {
		return err // this server may have started again, and not know what it has done before
	}
	if e.Members()[id].Vote {
		return nil
	}
	if err := e.RemoveServer(ctx, id, false); err != nil && !errors.Is(err, ErrNoMember) {
		return err
	}
	return e.addServer(ctx, state.Member{ID: id, Vote: true})
}

// TransferTo hands leadership to a voter, or with NoServer from this ensemble's leader
// to the voter that is most up to date.
//
// Errors: ErrStandalone, ErrNoMember, ErrNoLeader; ctx's; that it could not catch up in time.
func (e *Ensemble) TransferTo(ctx context.Context, id state.ServerID) error {
	err := ErrNoMember
	switch {
	case e.cfg.Standalone:
		err = ErrStandalone
	case id == state.NoServer:
		err = e.transferAway(ctx)
	case e.suffrage(id) == Voter:
		err = e.askLeader(ctx, Request{Op: controlTransfer, Server: id})
	}
	if err != nil {
		return fmt.Errorf("handing over leadership: %w", err)
	}
	return nil
}

// transferAway takes leadership from the server that has it now. The request names
// that server: a repetition whose first answer was lost must not take it from the
// next one too.
func (e *Ensemble) transferAway(ctx context.Context) error {
	var leader state.ServerID
	err := e.retryChange(ctx, func() error {
		if leader = e.cfg.Leadership.Now().Leader; leader == state.NoServer {
			return errNoneKnown
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.askLeader(ctx, Request{Op: controlTransfer, Server: state.NoServer, Leader: leader})
}

// CheckStop reports, with ErrTooFew, that the ensemble would lose its majority if this
// server stopped now.
//
// Errors: ErrTooFew, ErrNoLeader; ctx's.
func (e *Ensemble) CheckStop(ctx context.Context) error {
	if e.cfg.Standalone {
		return fmt.Errorf("%w: this server is standalone", ErrTooFew)
	}
	return e.askLeader(ctx, Request{Op: controlCheckStop, Server: e.cfg.Self})
}

// askLeader has the leader do something, whichever server that is, until ctx ends. All
// requests can be repeated.
func (e *Ensemble) askLeader(ctx context.Context, req Request) error {
	return e.retryChange(ctx, func() error { return e.askLeaderOnce(req) })
}

func (e *Ensemble) askLeaderOnce(req Request) error {
	leader := e.cfg.Leadership.Now().Leader
	switch leader {
	case state.NoServer:
		return errNoneKnown
	case e.cfg.Self:
		if req.Op == controlBind {
			return e.enroll(&req)
		}
		return e.executeAsLeader(&req)
	}
	reply, err := e.Ask(e.cfg.Context, leader, req)
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

// noLeaderLimit is how long a leader is waited for who is not reached, much longer than an election takes, and shorter
// than those who ask wait for an answer.
const noLeaderLimit = 5 * time.Second

// unsentError is that of a request that has not left this server.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// retryChange is retry for a change that may have reached no leader: then it ends with ErrNoLeader, after
// noLeaderLimit at the latest.
func (e *Ensemble) retryChange(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(noLeaderLimit, func() { cancel(ErrNoLeader) })
	defer late.Stop()
	sent := false
	err := e.retry(ctx, func() error {
		err := try()
		var unsent unsentError
		if errors.Is(err, errNotLeader) && !errors.As(err, &unsent) {
			sent = true
			late.Stop()
		}
		return err
	})
	if !sent && ctx.Err() != nil && errors.Is(err, errNotLeader) {
		return fmt.Errorf("%w (%w)", ErrNoLeader, errNotLeader)
	}
	return err
}

// retry calls try until it returns something other than errNotLeader, or ctx or the node ends.
func (e *Ensemble) retry(ctx context.Context, try func() error) error {
	for wait := retryMin; ; wait = min(2*wait, retryMax) {
		err := try()
		if !errors.Is(err, errNotLeader) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-e.cfg.Context.Done():
			return context.Cause(e.cfg.Context)
		case <-time.After(wait):
		}
	}
}

// awaitLeader returns when a leader is known, without which a command of this server's would wait for one, and then be
// carried out when no one expects it. Errors: ErrNoLeader.
func (e *Ensemble) awaitLeader(ctx context.Context) error {
	return e.retryChange(ctx, func() error {
		if e.cfg.Leadership.Now().Leader == state.NoServer {
			return errNoneKnown
		}
		return nil
	})
}

// errNoneKnown reports that there is no server to ask.
var errNoneKnown = unsentError{errNotLeader}

// Status asks the leader for the ensemble's status. Any server can be asked. It takes as
// long as the slowest server that is connected needs for an answer, and at most
// about two seconds if there is a leader.
//
// Errors: ctx's, when no leader has answered until then; ErrStopped.
func (e *Ensemble) Status(ctx context.Context) (Status, error) {
	var s *Status
	err := e.retry(ctx, func() (err error) {
		s, err = e.askStatus(ctx)
		return err
	})
	switch {
	case e.cfg.Context.Err() != nil:
		return Status{}, context.Cause(e.cfg.Context)
	case err != nil:
		return Status{}, fmt.Errorf("asking the leader for the ensemble's status: %w", err)
	}
	return *s, nil
}

func (e *Ensemble) askStatus(ctx context.Context) (*Status, error) {
	leader := e.cfg.Leadership.Now().Leader
	switch leader {
	case state.NoServer:
		return nil, errNoneKnown
	case e.cfg.Self:
		return e.statusAsLeader()
	}
	reply, err := e.Ask(ctx, leader, Request{Op: controlStatus})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNotLeader, err)
	case reply.Status == nil:
		return nil, fmt.Errorf("%w: server %d does not have it", errNotLeader, leader)
	}
	return reply.Status, nil
}

// Levels returns the ensemble's feature level, as applied here, and the highest one that all its servers speak; 0: not
// known.
func (e *Ensemble) Levels() (now, highest state.Level) {
	members := e.Members()
	all := map[state.ServerID]bool{}
	for id := range members {
		all[id] = true
	}
	highest, _ = state.CommonLevel(all, members)
	return e.cfg.Applied.Level(), highest
}

// RaiseLevel raises the ensemble's feature level, for good: servers that do not speak it cannot come back. The state
// machine refuses it unless every server has published that it speaks it. To repeat it is harmless.
//
// Errors: ErrLevel, with the server that is in the way; ErrNoLeader; ctx's and ErrStopped, and then the outcome is
// unknown.
func (e *Ensemble) RaiseLevel(ctx context.Context, to state.Level) error {
	if err := e.checkLevel(to); err != nil {
		return err
	}
	if err := e.awaitLeader(ctx); err != nil {
		return fmt.Errorf("raising the feature level to %d: %w", to, err)
	}
	code, err := e.cfg.Queue.Do(ctx, &state.Command{Op: state.OpLevel, Level: to})
	if err == nil && code != znode.OK {
		err = fmt.Errorf("%w: the ensemble has changed meanwhile", ErrLevel)
	}
	if err != nil {
		return fmt.Errorf("raising the feature level to %d: %w", to, err)
	}
	return nil
}

func (e *Ensemble) checkLevel(to state.Level) error {
	now, members := e.cfg.Applied.Level(), e.cfg.Applied.Members()
	if to == 0 || to < now {
		return fmt.Errorf("%w: the ensemble is at level %d and never goes back, so it cannot have level "+
			"%d", ErrLevel, now, to)
	}
	for id := range e.cfg.Applied.Configuration() {
		switch m := members[id]; {
		case m.MaxLevel == 0:
			return fmt.Errorf("%w: server %d has not said yet which levels it speaks; start it, or remove it from the "+
				"ensemble", ErrLevel, id)
		case m.MaxLevel < to:
			return fmt.Errorf("%w: server %d runs %s, which speaks levels %d to %d, not %d; upgrade it "+
				"first", ErrLevel, id,
				m.Version, m.MinLevel, m.MaxLevel, to)
		}
	}
	return nil
}
