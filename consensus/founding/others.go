package founding

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// errWiped reports that this server must not take part.
var errWiped = errors.New("this server's data directory is empty, but the ensemble exists")

// round is what one Round of asking has found.
type round struct {
	*Founder
	mayBeMissing []state.ServerID
	first        bool // this server founds the ensemble, if no other has
	secret       bool // this server believes only servers that know its join secret

	waits    []string                    // what there is to wait for
	absent   []state.ServerID            // those of mayBeMissing that have not answered
	wiped    error                       // the ensemble exists, and this server was in it
	founding bool                        // another server is founding it
	keys     *peerkeys.Table             // shown by the others, and this server's own
	seeds    map[string][]state.ServerID // who has which; also membership.NoSeed, and "" of an older release
}

// ask asks one server. It returns this server's identity if it has one now.
func (r *round) ask(s membership.Server) (*storage.Identity, error) {
	reply, err := r.cfg.Ensemble.Ask(r.cfg.Context, s.ID, membership.Request{Op: membership.RequestWho})
	exists := r.exists(s.ID, &reply, err)
	if r.secret && exists && r.cfg.Ensemble.Identity() == nil && r.cfg.Seed == nil {
		reply, err = r.cfg.Ensemble.Join(s.ID, true)
	}
	if err == nil && reply.Ensemble == "" && s.Voter {
		r.noteSeed(s.ID, reply.Seed)
	}
	switch {
	case exists && err != nil && (reply.NotLeader || !reply.Refused(err)):
		r.wait("for server %d, which has data, to let it in, for which it needs a leader (%v): start a majority with "+
			"its data; if that is lost for good: `zk-lite recover`", s.ID, err)
	case reply.Refused(err):
		r.wait("to be let in, for %v; server %d refuses the new key of server %[3]d: `zk-lite member add` or "+
			"`zk-lite member token %[3]d` makes a token, for the file of peer.joinSecretFile (%v)",
			errWiped, s.ID, r.cfg.Self, err)
	case err != nil && !s.Voter:
	case err != nil && reply.Version == 0 && slices.Contains(r.mayBeMissing, s.ID):
		r.absent = append(r.absent, s.ID)
	case err != nil:
		r.wait("for server %d (%s): %v", s.ID, s.Addr, err)
	case reply.Bootstrapping:
		r.founding = true
		r.wait("for server %d (%s), which forms the ensemble", s.ID, s.Addr)
	case reply.Ensemble != "":
		return r.judgeMember(s, &reply)
	case r.secret && !reply.Proved:
		r.wait("for server %d (%s) to prove that it knows the join secret", s.ID, s.Addr)
	case reply.ShownKey != nil:
		r.keys.Keys[s.ID] = *reply.ShownKey
	}
	return nil, nil
}

// exists reports whether the ensemble exists without this server, which may ask to be let in as one without data, by
// what a server has answered. One whose key another member has, and that votes, may be about to get its first word of
// it; then only the founder knows that all is done (see judgeMember). It would lose its vote otherwise.
func (r *round) exists(id state.ServerID, reply *membership.Reply, err error) bool {
	switch {
	case reply.Refused(err):
		return true
	case reply.Ensemble == "" || reply.Bootstrapping:
		return false
	}
	return !r.votes() || reply.Suffrage == membership.Nonvoter || r.first || id == r.lowestVoter(r.mayBeMissing)
}

func (r *round) wait(format string, args ...any) {
	r.waits = append(r.waits, fmt.Sprintf(format, args...))
}

// judgeMember is about a server that answers as a member of an ensemble.
func (r *round) judgeMember(s membership.Server, reply *membership.Reply) (*storage.Identity, error) {
	ensemble, err := storage.ParseEnsemble(reply.Ensemble)
	if err != nil {
		return nil, fmt.Errorf("server %d: %w", s.ID, err)
	}
	id := r.cfg.Ensemble.Identity()
	switch {
	case id == nil && r.cfg.Seed != nil:
		r.wait("for the end of ensemble %s, or of the data imported here: server %d has been in that ensemble "+
			"already, and this server cannot begin another. To join it without these data, stop this server and "+
			"delete %s",
			reply.Ensemble, s.ID, r.cfg.Seed.Path())
	case !r.votes() || reply.Suffrage == membership.Nonvoter:
		// A server that does not vote has acknowledged nothing that counts.
		if err := r.cfg.Ensemble.UpdateKeys(reply.Keys, s.ID, reply.ShownKey); err != nil {
			r.wait("%v", err)
			return nil, nil
		}
		id, err := r.joined(ensemble)
		return &id, err
	case reply.Suffrage == membership.NotMember:
		r.wait("to be added to ensemble %s, of which server %d is not a member", reply.Ensemble, r.cfg.Self)
	case id != nil:
		// The answer was given after this server had been asked to join.
		return id, nil
	case r.first || s.ID == r.lowestVoter(r.mayBeMissing):
		// The founder is the last to note that all is done.
		r.wiped = fmt.Errorf("%w: server %d is in ensemble %s. If its disk was replaced, remove server %d from the "+
			"ensemble and add it again; if it holds the wrong directory, set dataDir", errWiped, s.ID, reply.Ensemble,
			r.cfg.Self)
	}
	return nil, nil
}

// checkOthers asks the other voters until one is in this server's ensemble. A
// server that most of them refuse has the wrong data directory, or is in the
// wrong configuration, and ends rather than ask forever.
func (f *Founder) checkOthers(id storage.Identity) {
	tick := time.NewTicker(f.cfg.ElectionTimeout)
	defer tick.Stop()
	var warned time.Time
	for {
		voters, foreign := 0, []state.ServerID(nil)
		for _, s := range f.cfg.Servers {
			if s.Voter {
				voters++
			}
			if !s.Voter || s.ID == f.cfg.Self {
				continue
			}
			reply, err := f.cfg.Ensemble.Ask(f.cfg.Context, s.ID, membership.Request{Op: membership.RequestWho})
			if reply.Refused(err) {
				if f.cfg.Keys.HasSecret() {
					reply, err = f.cfg.Ensemble.Join(s.ID, false)
				}
				if err != nil && time.Since(warned) >= remindInterval {
					warned = time.Now()
					f.warnRefused(s.ID, err)
				}
			}
			var refused *mux.RefusedError
			switch {
			case err == nil && reply.Ensemble == fmt.Sprintf("%x", id.Ensemble):
				return
			case errors.As(err, &refused) && refused.Code == mux.RefusedEnsemble:
				foreign = append(foreign, s.ID)
			}
		}
		if len(foreign) > voters/2 {
			f.cfg.Fatal(fmt.Errorf("this server's data directory belongs to ensemble %x, but servers %v "+
				"belong to another ensemble: check dataDir, and the addresses in the configuration; the directory of "+
				"a former ensemble is to be emptied, but for myid", id.Ensemble, foreign))
			return
		}
		select {
		case <-f.cfg.Context.Done():
			return
		case <-tick.C:
		}
	}
}

// warnRefused logs why another server may have refused this one. Where the others show other keys than this server's
// directory has, a token would be of no use.
func (f *Founder) warnRefused(by state.ServerID, err error) {
	known, strange := false, false
	for _, s := range f.cfg.Servers {
		bound, another := f.cfg.Keys.ShownBy(s.ID)
		known, strange = known || bound, strange || another
	}
	if strange && !known {
		f.cfg.Logger.Warn("another server does not let this one in, and no server shows the key that dataDir has of "+
			"it: the directory is of a former ensemble, or of another one; empty it but for myid, or correct dataDir",
			"server", by, "error", err)
		return
	}
	f.cfg.Logger.Warn("another server does not let this one in: its key is not the one bound to it; "+
		"`zk-lite member token` makes a token, for the file of peer.joinSecretFile", "server", by, "error", err)
}
