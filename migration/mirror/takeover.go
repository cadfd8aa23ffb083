package mirror

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/migration/fence"
	"github.com/zk-lite/zk-lite/migration/learner"
	"github.com/zk-lite/zk-lite/znode"
)

// Plan is what a take-over begins with.
type Plan struct {
	Taken   state.Takeover   // that was done before; zero: none
	From    []string         // the peer addresses that are mirrored
	Members []learner.Member // the voters; empty from ZooKeeper 3.4
	Point   fence.Point
	Unmet   []Unmet // what is in the way; empty: nothing
}

// Unmet is something that is in the way of a take-over, and what to do.
type Unmet struct{ What, Do string }

// mostLag is how far behind a mirror may be for a plan. What comes later is in the servers' logs.
const mostLag = time.Second

// weighed finds quorums that are no majorities.
var weighed = regexp.MustCompile(`(?m)^\s*(group|weight)\.`)

// Plan returns a plan of this moment. Ask the leader's server: the others do not know the origin.
func (m *Mirror) Plan() Plan {
	s, held := m.Status(), m.log.Held()
	p := Plan{Taken: s.Taken}
	unmet := func(what, do string) { p.Unmet = append(p.Unmet, Unmet{what, do}) }
	if s.Phase == Off {
		do := "zk-lite mirror --from HOST:PEERPORT,... begins it"
		if p.Taken.Source != "" {
			do = "nothing: this ensemble serves, and another mirror needs a new one"
		}
		unmet("nothing is mirrored", do)
		return p
	}
	p.From = strings.Split(s.Source, ",")
	p.Point.After, p.Point.Digest = fence.Zxid(held.Zxid), fence.Digest(held.Digest)
	switch {
	case s.Fault != "":
		unmet("the mirror has stopped: "+s.Fault, "zk-lite mirror --restart takes the state again")
	case !s.Loaded:
		unmet("the state is not loaded", "wait until zk-lite mirror status has it")
	case s.Phase != Following:
		unmet("the mirror does not follow: "+string(s.Phase)+" "+s.Error,
			"if ZooKeeper has stopped already, the command to fence it is good all the same; else zk-lite mirror "+
				"status")
	case max(s.Received, s.Proposed) > s.Zxid && s.Lag > mostLag:
		unmet(fmt.Sprintf("the mirror is %v behind", s.Lag.Round(time.Millisecond)), "wait, or reduce the load")
	}
	if s.DiffersSince != 0 {
		unmet(fmt.Sprintf("no digest has fitted since zxid %v", s.DiffersSince),
			"wait a minute: writes of / spoil them for a while; if it stays, zk-lite mirror --restart")
	}
	m.voters(&p, unmet)
	return p
}

// voters completes a plan by the origin's configuration.
func (m *Mirror) voters(p *Plan, unmet func(what, do string)) {
	text, known := m.configuration()
	members, err := learner.ParseMembers(text)
	switch {
	case err != nil:
		unmet("ZooKeeper's configuration cannot be read: "+err.Error(), "report it")
	case weighed.MatchString(text):
		unmet("ZooKeeper's quorums are no majorities: it has groups or weights",
			"stop it, and use zk-lite import-zookeeper instead")
	case !known:
		unmet("ZooKeeper's voters are not known, as this leader has not been connected to it yet",
			"wait until the mirror follows")
	}
	for _, one := range members {
		if !one.Observer {
			p.Members = append(p.Members, one)
			p.Point.Voters = append(p.Point.Voters, one.ID)
		}
	}
}

// configuration is the origin's, if this server leads and has learned it.
func (m *Mirror) configuration() (text string, known bool) {
	term := m.log.Leads()
	m.mu.Lock()
	defer m.mu.Unlock()
	if term == 0 || m.here.term != term {
		return "", false
	}
	return m.here.config, true
}

// Taken is a take-over that is done.
type Taken struct {
	Already bool           // it was done before
	Held                   // now
	Record  state.Takeover // what the state keeps of it
	Took    time.Duration
}

// ErrNotLoaded means that there is no copy of the origin that could be taken over.
var ErrNotLoaded = errors.New("the state is not the origin's: the mirror has not loaded it, or has lost its place")

// Takeover makes the mirrored state the ensemble's own, with the transactions that the receipts' logs have and the
// mirror has not heard of. The receipts must prove that the origin cannot acknowledge writes; with force they need not.
//
// Any server can do it, also while the leader's Mirror still follows: machines apply the next transaction only, from
// whom it may come, and none once the mirror has ended. After an error, or the death of any server, it can be repeated:
// the state keeps a record of what was taken over.
//
// Errors: those of fence.Judge and Receipt.Next, ErrNotLoaded, ErrOff (nothing is mirrored, and what the receipts say
// was not taken over), and those of Log.Do.
func (m *Mirror) Takeover(ctx context.Context, receipts []*fence.Receipt, force bool) (t Taken, err error) {
	begun := time.Now()
	for {
		t, err = m.takeover(ctx, receipts, force)
		if !errors.Is(err, errDeposed) { // else the next leader goes on
			break
		}
		if !wait(ctx, lookEvery) {
			return t, context.Cause(ctx)
		}
	}
	t.Took = time.Since(begun)
	attributes := []any{"zxid", t.Zxid, "znodes", t.Znodes, "sessions", t.Sessions, "tail", t.Record.Tail, "server",
		t.Record.Server, "receipts", len(receipts), "force", force, "took", t.Took}
	switch {
	case err != nil:
		m.cfg.Logger.Warn("the take-over from ZooKeeper is not done", append(attributes, "error", err)...)
	case !t.Already:
		m.cfg.Logger.Info("the ensemble has taken over from ZooKeeper, and serves", attributes...)
	}
	return t, err
}

func (m *Mirror) takeover(ctx context.Context, receipts []*fence.Receipt, force bool) (t Taken, err error) {
	if _, err := m.log.Do(ctx, &state.Command{Op: state.OpSync}); err != nil {
		return t, err
	}
	now, on := m.log.Mirror()
	t.Held = m.log.Held()
	var known []int64
	if text, is := m.configuration(); is {
		members, err := learner.ParseMembers(text)
		if err != nil {
			return t, err
		}
		for _, one := range members {
			if !one.Observer {
				known = append(known, one.ID)
			}
		}
	}
	last, err := fence.Judge(receipts, strings.Count(now.Source, ",")+1, known, force || !on)
	switch {
	case err != nil:
		return t, err
	case !on:
		return t.already(&now.Taken, last)
	case !now.Loaded:
		return t, ErrNotLoaded
	}
	t.Record = recordOf(last)
	t.Record.Forced = force
	if last != nil {
		if err := m.bring(ctx, &t, last, force); err != nil {
			return t, err
		}
	}
	err = m.end(ctx, t.Record.Append(nil))
	now, _ = m.log.Mirror()
	switch {
	case errors.Is(err, ErrOff): // someone has ended it meanwhile
		return t.already(&now.Taken, last)
	case err != nil:
		return t, err
	}
	t.Held, t.Record = m.log.Held(), now.Taken
	return t, nil
}

// recordOf is what is recorded of the log of a receipt; nothing if there is none.
func recordOf(r *fence.Receipt) (t state.Takeover) {
	if r != nil {
		t.Server, t.Last, t.Digest = r.Server, znode.Zxid(r.Zxid), uint64(r.End)
	}
	return t
}

// already is the outcome if nothing is mirrored: that was, if anything, was taken over last.
func (t Taken) already(was *state.Takeover, last *fence.Receipt) (Taken, error) {
	want := recordOf(last)
	switch {
	case was.Source == "":
		return t, fmt.Errorf("%w, and nothing was taken over", ErrOff)
	case was.Last != want.Last || was.Digest != want.Digest:
		return t, fmt.Errorf("%w: the state was %v, and the newest of these receipts ends with zxid %v and digest %v",
			ErrOff, was, want.Last, fence.Digest(want.Digest))
	}
	t.Already, t.Record = true, *was
	return t, nil
}

// bring brings what a receipt has and the state has not into the log, and compares both.
func (m *Mirror) bring(ctx context.Context, t *Taken, r *fence.Receipt, force bool) error {
	tail, err := r.Next(t.Zxid, t.Digest, force)
	if err != nil || len(tail) == 0 {
		return err
	}
	t.Record.Tail = uint64(len(tail))
	for len(tail) > 0 {
		c := &state.Command{Op: state.OpMirror, Mirror: state.MirrorFollow, Term: t.Term}
		for len(tail) > 0 && (len(c.Data) == 0 || len(c.Data)+len(tail[0]) <= maxBatch) {
			c.Data, tail = state.AppendTxn(c.Data, tail[0]), tail[1:]
		}
		x, err := m.log.Do(ctx, c)
		if err == nil {
			err = errorOf(x.Code)
		}
		if err != nil {
			return err
		}
	}
	t.Held = m.log.Held()
	if t.Zxid == znode.Zxid(r.Zxid) && fence.Digest(t.Digest) != r.End && !force {
		return fmt.Errorf("%w: after all of them, at zxid %v, the znodes here have the digest %v, and those of "+
			"server %d had %v",
			fence.ErrDiffers, t.Zxid, fence.Digest(t.Digest), r.Server, r.End)
	}
	return nil
}
