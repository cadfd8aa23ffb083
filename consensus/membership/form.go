package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// An operator who cannot have all voters up for the first start says which are missing (storage.FormFile; ADR 0028).
// The ensemble is formed with all voters of the configuration, so that two majorities always share a server, and then
// takes the vote from those that are missing. They may come with an empty disk, as every server without a vote.

// CheckForm reports why server self may not form an ensemble of these servers without some of its voters.
func CheckForm(servers []Server, self state.ServerID, without []state.ServerID) error {
	var voters, left []state.ServerID
	for _, s := range servers {
		if s.Voter {
			voters = append(voters, s.ID)
		}
	}
	slices.Sort(voters)
	for _, id := range without {
		if !slices.Contains(voters, id) {
			return fmt.Errorf("server %d is no voter of the configuration: its voters are %v", id.Number(), voters)
		}
	}
	for _, id := range voters {
		if !slices.Contains(without, id) {
			left = append(left, id)
		}
	}
	switch need := len(voters)/2 + 1; {
	case len(servers) == 1:
		return errors.New("this server is standalone: it waits for no others")
	case len(without) == 0:
		return errors.New("no server is named that is missing")
	case len(left) < need:
		return fmt.Errorf("without servers %v, %d of %d voters are left, and that is no majority: start %d more of "+
			"them, and name those that are still missing", without, len(left), len(voters), need-len(left))
	case left[0] != self:
		return fmt.Errorf("server %d, the voter with the lowest id that is left, forms the ensemble, and this is "+
			"server %d: say it there", left[0], self)
	}
	return nil
}

// excused returns the voters that may be missing. An error says why what an operator has said is of no use.
func (b *bootstrapper) excused() ([]state.ServerID, error) {
	without, err := b.cfg.Store.Form.Load()
	if err == nil && len(without) > 0 {
		if err = CheckForm(b.cfg.Servers, b.cfg.Self, without); err != nil {
			err = fmt.Errorf("%s: %w", b.cfg.Store.Form, err)
		}
	}
	return without, err
}

// leaveOut takes the vote from a voter that was missing when the ensemble was formed; it gets it back when it has come
// and has caught up. Until it has come, nothing but its Vote is known of it. To repeat it is harmless.
func (e *Ensemble) leaveOut(id state.ServerID) error {
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
