package membership

import (
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
)

// round is what one round of asking (BootstrapRound) has found.
type round struct {
	*bootstrapper
	without []state.ServerID // these voters may be missing
	first   bool             // this server bootstraps, if nobody has
	secret  bool             // this server believes only who knows its join secret

	missing []string         // what there is to wait for
	absent  []state.ServerID // those of without that have not answered
	wiped   error            // the ensemble exists, and this server was in it
	forming bool             // another server is bootstrapping it
	keys    *peerkeys.Table
}

// ask asks one server. It returns this server's identity if it has one now.
func (r *round) ask(s Server) (*storage.Identity, error) {
	reply, err := r.control.ask(r.cfg.Context, s.ID, controlRequest{Op: controlWho})
	formed := r.isFormed(s.ID, &reply, err)
	if r.secret && formed && r.identity.Load() == nil {
		reply, err = r.join(s.ID, true)
	}
	switch {
	case formed && err != nil && (reply.NotLeader || !isRefusal(&reply, err)):
		r.wait("for server %d, which has data, to let it in, for which it needs a leader (%v): start a majority with "+
			"its data; if that is lost for good: `zk-lite recover`", s.ID, err)
	case isRefusal(&reply, err):
		r.wait("to be let in, for %v; server %d refuses the new key of server %[3]d: `zk-lite member add` or "+
			"`zk-lite member token %[3]d` makes a token, for the file of peer.joinSecretFile (%v)",
			errWiped, s.ID, r.cfg.Self, err)
	case err != nil && !s.Voter:
	case err != nil && reply.Version == 0 && slices.Contains(r.without, s.ID):
		r.absent = append(r.absent, s.ID)
	case err != nil:
		r.wait("for server %d (%s): %v", s.ID, s.Addr, err)
	case reply.Bootstrapping:
		r.forming = true
		r.wait("for server %d (%s), which forms the ensemble", s.ID, s.Addr)
	case reply.Ensemble != "":
		return r.found(s, &reply)
	case r.secret && !reply.proved:
		r.wait("for server %d (%s) to prove that it knows the join secret", s.ID, s.Addr)
	case reply.key != nil:
		r.keys.Keys[s.ID] = *reply.key
	}
	return nil, nil
}

// isFormed reports that the ensemble exists without this server, which may ask to be let in as one without data, by
// what a server has answered. One whose key another member has, and that votes, may be about to get its first word of
// it; then only the bootstrapper knows that all is done (see found). It would lose its vote otherwise.
func (r *round) isFormed(id state.ServerID, reply *controlReply, err error) bool {
	switch {
	case isRefusal(reply, err):
		return true
	case reply.Ensemble == "" || reply.Bootstrapping:
		return false
	}
	return !r.self().Voter || reply.Suffrage == nonvoter || r.first || id == r.lowestVoter(r.without)
}

func (r *round) wait(format string, args ...any) {
	r.missing = append(r.missing, fmt.Sprintf(format, args...))
}

// found is about a server that answers as a member of an ensemble.
func (r *round) found(s Server, reply *controlReply) (*storage.Identity, error) {
	ensemble, err := storage.ParseEnsemble(reply.Ensemble)
	if err != nil {
		return nil, fmt.Errorf("server %d: %w", s.ID, err)
	}
	id := r.identity.Load()
	switch {
	case !r.self().Voter || reply.Suffrage == nonvoter:
		// A server that does not vote has acknowledged nothing that counts.
		if err := r.adoptKeys(reply.Keys, s.ID, reply.key); err != nil {
			r.wait("%v", err)
			return nil, nil
		}
		id, err := r.adoptEnsemble(ensemble)
		return &id, err
	case reply.Suffrage == notMember:
		r.wait("to be added to ensemble %s, of which server %d is not a member", reply.Ensemble, r.cfg.Self)
	case id != nil:
		// The answer was given after this server had been asked to join.
		return id, nil
	case r.first || s.ID == r.lowestVoter(r.without):
		// The bootstrapper is the last to note that all is done.
		r.wiped = fmt.Errorf("%w: server %d is in ensemble %s. If its disk was replaced, remove server %d from the "+
			"ensemble and add it again; if it holds the wrong directory, set dataDir", errWiped, s.ID, reply.Ensemble,
			r.cfg.Self)
	}
	return nil, nil
}
