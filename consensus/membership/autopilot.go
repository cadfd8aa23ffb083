package membership

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
)

// Autopilot is what the leader changes in the ensemble by itself. The zero value gives a server that shall vote its
// vote as soon as it has caught up, and removes no server.
type Autopilot struct {
	// StableTime is for how long a server must have been connected and caught up, without a break, for its vote.
	StableTime time.Duration
	// RemoveAfter is after how much time without a connection a server is removed; 0: never. The time begins again with
	// each leader.
	RemoveAfter time.Duration
	// MinVoters is how many voters are left at least when one is removed.
	MinVoters int
}

// Action is something that the leader does with a member by itself.
type Action string

// The actions.
const (
	ActionPromote Action = "promote" // give it a vote
	ActionRemove  Action = "remove"
)

// Plan is what the leader will do with a member by itself.
type Plan struct {
	Action Action        `json:"action"`
	In     time.Duration `json:"in"`              // from now, if it goes on as it is; without a meaning if it Waits
	Waits  string        `json:"waits,omitempty"` // for what it waits; empty: for the time alone
}

// plan is a Plan with the moment at which it is due.
type plan struct {
	action Action
	due    time.Time
	waits  string
}

// sight is what the leader sees of another member at one moment.
type sight struct {
	votes  bool
	joins  bool   // has no vote, and shall have one
	open   bool   // its stream is connected
	behind string // what it lacks for a vote; empty: nothing
}

// autopilot is what one leadership remembers of the others.
type autopilot struct {
	Autopilot
	seen   map[state.ServerID]time.Time // when they were last connected, or first looked at
	steady map[state.ServerID]time.Time // since when they have lacked nothing for a vote
}

func newAutopilot(settings Autopilot) *autopilot {
	return &autopilot{settings, map[state.ServerID]time.Time{}, map[state.ServerID]time.Time{}}
}

// plan returns what the leader will do with the other members. The leader itself votes.
func (a *autopilot) plan(now time.Time, others map[state.ServerID]sight) map[state.ServerID]plan {
	plans := map[state.ServerID]plan{}
	left, open := 0, 1 // voters, when one of the others is removed that is not connected; and those of them that are
	for _, s := range others {
		if s.votes {
			left++
			if s.open {
				open++
			}
		}
	}
	a.note(now, others)
	for id, s := range others {
		switch {
		case !s.open && a.RemoveAfter > 0:
			p := plan{action: ActionRemove, due: a.seen[id].Add(a.RemoveAfter)}
			switch {
			case s.votes && left < a.MinVoters:
				p.waits = fmt.Sprintf("%d voters would be left, and autopilot.minVoters is %d", left, a.MinVoters)
			case s.votes && open <= left/2:
				p.waits = fmt.Sprintf("of the %d voters that would be left %d are connected: no majority", left, open)
			}
			plans[id] = p
		case s.joins:
			plans[id] = plan{ActionPromote, a.steady[id].Add(a.StableTime), s.behind}
		}
	}
	return plans
}

// note remembers what is seen now, of those that are members.
func (a *autopilot) note(now time.Time, others map[state.ServerID]sight) {
	gone := func(id state.ServerID, _ time.Time) bool { _, in := others[id]; return !in }
	maps.DeleteFunc(a.seen, gone)
	maps.DeleteFunc(a.steady, gone)
	for id, s := range others {
		if _, known := a.seen[id]; s.open || !known {
			a.seen[id] = now
		}
		if _, steady := a.steady[id]; s.behind != "" {
			delete(a.steady, id)
		} else if !steady {
			a.steady[id] = now
		}
	}
}

// RunAutopilot runs while this server leads: it carries out reconfigurations, and when there is none it gives votes,
// and removes servers that leave or do not come back.
func (l *leader) RunAutopilot(ctx context.Context) {
	defer l.plans.Store(nil)
	a, leaving := newAutopilot(l.cfg.Autopilot), map[state.ServerID]time.Time{}
	tick := time.NewTicker(l.cfg.ElectionTimeout)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.reconfigured:
		}
		if x := l.reconfig.Load(); x != nil {
			l.plans.Store(nil) // what it would do might be against it
			l.reconfigure(ctx, x)
			continue
		}
		l.removeLeaving(leaving)
		plans := a.plan(time.Now(), l.seeOthers(ctx, func(m state.Member) bool { return m.Vote }))
		l.logPlans(plans)
		l.plans.Store(&plans)
		for _, id := range slices.Sorted(maps.Keys(plans)) {
			if p := plans[id]; p.waits == "" && !time.Now().Before(p.due) {
				if err := l.carryOut(id, p.action); err != nil {
					l.cfg.Logger.Info("autopilot tries again", "server", id, "action", p.action, "error", err)
				}
				break // what is right for the next one is seen then
			}
		}
	}
}

// seeOthers looks at the other members. Those that are to vote, and do not, are asked whether they have caught up.
func (l *leader) seeOthers(ctx context.Context, toVote func(state.Member) bool) map[state.ServerID]sight {
	others := map[state.ServerID]sight{}
	for id, m := range l.configuration.Members() {
		if id == l.cfg.Self {
			continue
		}
		s := sight{votes: m.Voter, joins: toVote(m) && !m.Voter}
		s.open, _ = l.cfg.Streams.Contact(id)
		switch {
		case !s.open: // also one that has not joined: with a vote, it would be taken for one that has lost its disk
			s.behind = "it is not connected"
		case s.joins:
			reply, err := l.control.Ask(ctx, id, Request{Op: RequestWho})
			switch {
			case err != nil:
				s.behind = err.Error()
			case reply.Ensemble == "":
				s.behind = "it has not joined"
			case reply.Applied+caughtUp < l.cfg.Applied.Index.Load():
				s.behind = "it is catching up"
			}
		}
		others[id] = s
	}
	return others
}

func (l *leader) carryOut(id state.ServerID, action Action) error {
	r, err := l.leads()
	if err != nil {
		return err
	}
	if action == ActionPromote {
		addr := raft.ServerAddress(AddressOf(id))
		err = l.answerOf(r.AddVoter(transport.RaftID(uint64(id)), addr, 0, changeTimeout))
		if err == nil {
			l.cfg.Logger.Info("a server has caught up and votes from now on", "server", id)
		}
		return err
	}
	if err = l.removeAsLeader(r, &Request{Server: id}); err == nil {
		l.cfg.Logger.Warn("a server was removed: it was not connected for autopilot.removeAfter", "server", id,
			"time", l.cfg.Autopilot.RemoveAfter)
	}
	return err
}

// logPlans logs what has changed.
func (l *leader) logPlans(plans map[state.ServerID]plan) {
	var before map[state.ServerID]plan
	if p := l.plans.Load(); p != nil {
		before = *p
	}
	for id, p := range plans {
		if was := before[id]; was.action == p.action && was.waits == p.waits {
			continue
		}
		text := "a server votes soon"
		switch {
		case p.action == ActionRemove:
			text = "a server is not connected, and will be removed"
		case p.waits != "":
			text = "a server has no vote yet"
		}
		when := []any{"server", id, "in", max(time.Until(p.due), 0).Round(time.Second)}
		if p.waits != "" {
			when = []any{"server", id, "waits", p.waits}
		}
		l.cfg.Logger.Info(text, when...)
	}
}

// planOf is what this leader will do with a member; nil: nothing.
func (l *leader) planOf(id state.ServerID) *Plan {
	all := l.plans.Load()
	if all == nil {
		return nil
	}
	p, is := (*all)[id]
	if !is {
		return nil
	}
	return &Plan{p.action, max(time.Until(p.due), 0), p.waits}
}
