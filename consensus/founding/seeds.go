package founding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/migration/seed"
)

// An ensemble may begin with the data of a ZooKeeper ensemble (ADR 0034): one or more of its voters have them, as a
// seed. The founder is the voter with the lowest id as always, with a seed or without. It learns of all seeds while it
// asks the others, and all must be equal. What it notes and sends names the seed. Then a server that has the seed
// gives raft a snapshot of it as its first state; a server that has none gives raft nothing, not even a configuration.
//
// INVARIANT: a server without the data cannot lead. raft does not campaign without a configuration (runFollower), nor
// does the transport's detector (electorate); a configuration comes with the leader's snapshot, which has the data. It
// does grant votes (requestVote), so a server with the data leads as soon as a majority runs. If the only server with
// the data ends before another has them, no server leads until it comes back.

// CheckImport returns why server self cannot begin with imported data: it has data, or runs, or has no vote, or
// ZooKeeper's own files are in its directories. It changes nothing.
//
// Errors: also ErrHasData, seed.ErrExists.
func CheckImport(c storage.Config, self state.ServerID, servers []membership.Server) error {
	id, err := c.Identity()
	switch {
	case err != nil:
		return err
	case id != nil:
		return fmt.Errorf("%w: %s has data of ensemble %x", ErrHasData, c.Dir, id.Ensemble)
	case !slices.ContainsFunc(servers, func(s membership.Server) bool { return s.ID == self && s.Voter }):
		return fmt.Errorf("server %d has no vote: import the data on one that has", self)
	}
	if err := seed.CheckNone(c.Dir); err != nil {
		return err
	}
	if runs, err := storage.InUse(c.Dir); err != nil || runs {
		return cmp.Or(err, fmt.Errorf("a server runs in %s: stop it; it reads imported data when it starts", c.Dir))
	}
	return c.RefuseZooKeeper()
}

// seed is the digest of this server's seed; empty: it has none.
func (f *Founder) seed() string {
	if f.cfg.Seed == nil {
		return ""
	}
	return f.cfg.Seed.Digest()
}

// noteSeed notes what a voter that is fresh has said of its seed.
func (r *round) noteSeed(id state.ServerID, digest string) {
	r.seeds[digest] = append(r.seeds[digest], id)
}

// judgeSeeds returns the seed with which the ensemble is founded; empty: none. It notes what there is to wait for if
// those of the voters do not agree.
func (r *round) judgeSeeds() string {
	old := r.seeds[""]
	delete(r.seeds, "")
	delete(r.seeds, membership.NoSeed)
	digests := slices.Sorted(maps.Keys(r.seeds))
	switch {
	case len(digests) == 0:
		return ""
	case len(digests) > 1:
		one, other := r.seeds[digests[0]], r.seeds[digests[1]]
		r.wait("for one set of imported data: server %d has %s, and server %d has %s. Stop them, and delete %s on "+
			"those that are not to count", one[0], digests[0], other[0], digests[1], seed.Name)
	case len(old) > 0:
		r.wait("for servers %v to run a release that can begin with imported data, those of server %d", old,
			r.seeds[digests[0]][0])
	case !r.votes() && r.cfg.Seed != nil:
		r.wait("for the data imported here to be deleted: this server has no vote. Stop it, import them on a voter, "+
			"and delete %s", r.cfg.Seed.Path())
	}
	return digests[0]
}

// accepts returns why this server does not belong to an ensemble that another founds.
func (f *Founder) accepts(req *membership.Request) error {
	own := f.seed()
	if own == "" || own == req.Seed {
		return nil
	}
	theirs := "without imported data"
	if req.Seed != "" {
		theirs = "with the imported data " + req.Seed
	}
	err := fmt.Errorf("server %d has the imported data %s (%s), and server %d founds the ensemble %s: run the same "+
		"release on all servers, and stop those whose data are not to count, and delete the file there",
		f.cfg.Self, own, f.cfg.Seed.Path(), req.From, theirs)
	f.cfg.Logger.Warn("this server does not take part in the founding of an ensemble", "error", err)
	return err
}

// Plant finishes what Found has begun, before raft starts, also after a crash: a server that has the seed gives raft
// its snapshot, and removes it. It changes id accordingly: only the founder still needs to know the seed.
func (f *Founder) Plant(id *storage.Identity) error {
	if err := f.plantSeed(id.Seed); err != nil {
		return err
	}
	if id.Seed != "" && !id.Bootstrapping {
		id.Seed = ""
		if err := f.cfg.Store.Identity.Save(*id); err != nil {
			return err
		}
	}
	if f.cfg.Seed == nil {
		return nil
	}
	if err := f.cfg.Seed.Remove(); err != nil { // the next start tries again
		f.cfg.Logger.Warn("a file that is of no use any more stays", "error", err)
	}
	return nil
}

func (f *Founder) plantSeed(digest string) error {
	s := f.cfg.Store
	there, err := s.Snapshots.List()
	switch {
	case err != nil:
		return fmt.Errorf("listing snapshots: %w", err)
	case f.cfg.Seed == nil || digest == "" || len(there) > 0:
		return nil
	case f.seed() != digest:
		return fmt.Errorf("this server began to found an ensemble with the imported data %s, and %s has others, %s: "+
			"empty the data directories of all servers but for myid, and import again", digest,
			f.cfg.Seed.Path(), f.seed())
	}
	m, c := f.cfg.Seed.Machine(), membership.ConfigurationOf(f.cfg.Servers)
	m.Configure(m.Index(), m.Point().Term, membership.VotersOf(c.Servers), state.Unobserved{})
	if err := s.Begin(m, c); err != nil {
		return fmt.Errorf("beginning with the imported data: %w", err)
	}
	f.cfg.Logger.Info("the ensemble begins with imported data", "zxid", m.Zxid())

	return nil
}
