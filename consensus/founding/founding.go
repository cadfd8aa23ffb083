// Package founding is the first start of a server: it founds the ensemble with all other voters, or joins one that
// exists.
//
// An ensemble is founded once, when all its voters start with empty data directories. The voter with the lowest id does
// it, the founder:
//
//  1. it asks every other voter; all must answer that they are fresh;
//  2. it notes on disk that it is founding ensemble X (a random id);
//  3. it sends every voter "you are server N of X", which each notes on disk;
//  4. when all have confirmed, it removes the note that it is founding.
//
// After a crash in between, 3 is done again. Every server bootstraps raft with the same configuration when it learns
// of X. Voters that an operator has named may be missing (missing.go). One or more of them may have the data of a
// ZooKeeper ensemble, with which the ensemble begins (seeds.go).
//
// A fresh server that finds an ensemble that exists, and is no longer being founded, had its disk wiped: it may have
// voted, and acknowledged what it no longer has. Letting it vote again could lose acknowledged writes, so it is
// refused, as is a server that is asked to join another ensemble than its own.
//
// The keys of the founding servers are believed as they are shown: the founder notes each server's key while it asks
// the others, and sends all of them with the ensemble's id. A voter takes only a table that agrees with what it sees
// itself: its own key, and that of the founder's connection. Later the table follows the log (peerkeys), and a server
// that was away asks the others for theirs.
//
// # Goroutines and locks
//
// Start finishes a founding and checks that the other servers are in the same ensemble, each in a goroutine that ends
// when it is done. There is no lock: Founder.accepting is a channel with room for one.
package founding

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/migration/seed"
)

const (
	retryInterval  = 50 * time.Millisecond // between two rounds of asking
	remindInterval = 5 * time.Second       // between two log lines about waiting
)

// Config is what a Founder is made of.
type Config struct {
	Self            state.ServerID
	Servers         []membership.Server // as configured
	Standalone      bool                // no other server can ever reach this one
	ElectionTimeout time.Duration
	Logger          *slog.Logger
	Keys            *peerkeys.Keys // nil: servers are not told apart by keys
	Store           *storage.Store
	RaftConfig      *raft.Config // RaftConfig and Transport are what raft is bootstrapped with
	Transport       raft.Transport
	Ensemble        *membership.Ensemble
	Seed            *seed.Seed // imported data; nil: this server has none

	Fatal   func(error)     // called when this server cannot go on
	Context context.Context // ends with the node; its cause is what is returned then
	Tasks   *sync.WaitGroup // of the goroutines that Close of the node waits for
}

// Founder brings a server without data into an ensemble.
type Founder struct {
	cfg       Config
	missing   File
	waiting   atomic.Pointer[string] // for what, before it has an identity; nil: not known yet
	accepted  chan storage.Identity  // capacity 1: another server has founded the ensemble with this one
	accepting chan struct{}          // has room for one call of Accept; no mutex: its owner waits for the disk
}

// New returns a Founder that does nothing by itself.
func New(cfg Config) *Founder {
	return &Founder{
		cfg: cfg, missing: FileIn(cfg.Store.Dir),
		accepted: make(chan storage.Identity, 1), accepting: make(chan struct{}, 1),
	}
}

// Waiting returns what this server waits for before it belongs to an ensemble; empty: it has not asked yet, or does.
func (f *Founder) Waiting() string {
	if text := f.waiting.Load(); text != nil && f.cfg.Ensemble.Identity() == nil {
		return *text
	}
	return ""
}

// Await founds the ensemble with the others, or joins it. It returns this server's identity.
func (f *Founder) Await() (storage.Identity, error) {
	if f.cfg.Standalone {
		return f.Found(newEnsemble(), false, f.seed())
	}
	reminded := time.Now()
	for {
		id, waiting, err := f.Round()
		switch {
		case err != nil:
			return storage.Identity{}, err
		case id != nil:
			return *id, nil
		}
		f.waiting.Store(&waiting)
		if time.Since(reminded) >= remindInterval {
			reminded = time.Now()
			f.cfg.Logger.Info("waiting to form the ensemble: all its voters must be up", "waiting", waiting)
		}
		select {
		case <-f.cfg.Context.Done():
			return storage.Identity{}, context.Cause(f.cfg.Context)
		case id := <-f.accepted:
			return id, nil
		case <-time.After(retryInterval):
		}
	}
}

// Round is one round of Await: it asks all others once. It returns the identity if this server has
// one now, or what it is waiting for.
func (f *Founder) Round() (*storage.Identity, string, error) {
	missing, err := f.mayBeMissing()
	if err != nil {
		return nil, err.Error(), nil
	}
	r := &round{
		Founder: f, mayBeMissing: missing, first: f.lowestVoter(missing) == f.cfg.Self,
		keys:   &peerkeys.Table{Keys: map[state.ServerID]peerkeys.Key{f.cfg.Self: f.cfg.Keys.Own()}},
		secret: f.cfg.Keys.HasSecret(), seeds: map[string][]state.ServerID{},
	}
	r.noteSeed(f.cfg.Self, cmp.Or(f.seed(), membership.NoSeed))
	for _, s := range f.cfg.Servers {
		if s.ID == f.cfg.Self {
			continue
		}
		if id, err := r.ask(s); id != nil || err != nil {
			return id, "", err
		}
	}
	seed := r.judgeSeeds()
	switch {
	case r.wiped != nil && !r.founding:
		return nil, "", r.wiped
	case len(r.waits) > 0:
		return nil, strings.Join(slices.Compact(r.waits), "; "), nil // members give the same answer
	case f.lowestVoter(r.absent) != f.cfg.Self:
		return nil, "for the voter with the lowest id", nil
	}
	if len(missing) > 0 {
		f.cfg.Logger.Warn("forming the ensemble without all its voters", "missing", r.absent)
		if err := f.missing.Save(r.absent); err != nil { // what finish goes by
			return nil, "", err
		}
	}
	if f.cfg.Keys != nil {
		if err := f.cfg.Keys.Update(r.keys); err != nil {
			return nil, "", err
		}
	}
	id, err := f.Found(newEnsemble(), true, seed)
	return &id, "", err
}

func newEnsemble() (id [16]byte) {
	if _, err := rand.Read(id[:]); err != nil {
		panic(fmt.Sprintf("founding: the system gives no random bytes: %v", err))
	}
	return id
}

// joined notes that this server belongs to an ensemble that exists. Raft's
// configuration comes with the log.
func (f *Founder) joined(ensemble [16]byte) (storage.Identity, error) {
	id := storage.Identity{Ensemble: ensemble, Server: f.cfg.Self}
	return id, f.cfg.Store.Identity.Save(id)
}

// Found notes that this server belongs to an ensemble that is being founded, by this server if founder is set, and
// gives raft its first configuration, unless Plant does, because there is a seed.
func (f *Founder) Found(ensemble [16]byte, founder bool, seed string) (storage.Identity, error) {
	id := storage.Identity{Ensemble: ensemble, Server: f.cfg.Self, Bootstrapping: founder, Seed: seed}
	err := f.bootstrapRaft(seed != "")
	if err != nil {
		return id, err
	}
	return id, f.cfg.Store.Identity.Save(id)
}

// Accept makes this server a member of the ensemble that another server founds.
func (f *Founder) Accept(conn *mux.Conn, req *membership.Request) error {
	want, err := storage.ParseEnsemble(req.Ensemble)
	if err != nil {
		return err
	}
	f.accepting <- struct{}{}
	defer func() { <-f.accepting }()
	if have := f.cfg.Ensemble.Identity(); have != nil {
		if have.Ensemble != want {
			return fmt.Errorf("this server belongs to ensemble %x", have.Ensemble)
		}
		return nil
	}
	if err := f.accepts(req); err != nil {
		return err
	}
	if key, secure := f.cfg.Keys.KeyOf(conn.Conn); secure {
		if err := f.cfg.Ensemble.UpdateKeys(req.Keys, req.From, &key); err != nil {
			return err
		}
	}
	id, err := f.Found(want, false, req.Seed)
	if err != nil {
		return err
	}
	f.cfg.Ensemble.SetIdentity(id)
	f.accepted <- id
	return nil
}

// bootstrapRaft writes raft's first configuration. It may have done so before a
// crash, in which case it is there. With a seed there must be nothing, and nothing is written.
func (f *Founder) bootstrapRaft(seeded bool) error {
	s := f.cfg.Store
	exists, err := raft.HasExistingState(s.Log, s.Stable, s.Snapshots)
	switch {
	case err != nil:
		return fmt.Errorf("looking for raft's state: %w", err)
	case exists && seeded:
		return fmt.Errorf("the data directory %s has a term or a log of an ensemble, so no ensemble can be founded "+
			"with imported data: stop this server, and empty the directory but for myid and %s", s.Dir, seed.Name)
	case exists || seeded:
		return nil
	}
	c := membership.ConfigurationOf(f.cfg.Servers)
	if err := raft.BootstrapCluster(f.cfg.RaftConfig, s.Log, s.Stable, s.Snapshots, f.cfg.Transport, c); err != nil {
		return fmt.Errorf("bootstrapping raft: %w", err)
	}
	return nil
}

// Start finishes what a founder has begun, once this server belongs to an ensemble and raft runs, and checks
// that the others belong to the same ensemble.
func (f *Founder) Start() {
	id := *f.cfg.Ensemble.Identity()
	if id.Bootstrapping {
		f.cfg.Tasks.Go(func() { f.finish(id) })
	}
	if len(f.cfg.Servers) > 1 {
		f.cfg.Tasks.Go(func() { f.checkOthers(id) })
	}
}

// finish asks every voter to belong to the ensemble, until all do, and has those that are missing left out.
func (f *Founder) finish(id storage.Identity) {
	missing, err := f.missing.Load()
	if err != nil {
		f.cfg.Fatal(err)
		return
	}
	var present []state.ServerID
	for _, s := range f.cfg.Servers {
		if s.Voter && s.ID != f.cfg.Self && !slices.Contains(missing, s.ID) {
			present = append(present, s.ID)
		}
	}
	request := membership.Request{
		Op: membership.RequestFound, Ensemble: fmt.Sprintf("%x", id.Ensemble), Keys: f.cfg.Keys.Table(), Seed: id.Seed,
	}
	if id.Seed != "" {
		request.Op = membership.RequestFoundSeeded
	}
	join := func(to state.ServerID) error {
		_, err := f.cfg.Ensemble.Ask(f.cfg.Context, to, request)
		return err
	}
	if !f.untilDone("asking a server to join the new ensemble", present, join) ||
		!f.untilDone("leaving a missing server out", missing, f.cfg.Ensemble.LeaveOut) {
		return
	}
	id.Bootstrapping, id.Seed = false, ""
	if err := f.cfg.Store.Identity.Save(id); err != nil {
		f.cfg.Fatal(err)
		return
	}
	f.cfg.Ensemble.SetIdentity(id)
	if err := f.missing.Remove(); err != nil {
		f.cfg.Logger.Warn("a file that is of no use any more stays", "error", err)
	}
	f.cfg.Logger.Info("ensemble formed", "ensemble", fmt.Sprintf("%x", id.Ensemble))
}

// untilDone retries do for each server until it succeeds. It returns false if the node stops first.
func (f *Founder) untilDone(what string, servers []state.ServerID, do func(state.ServerID) error) bool {
	for left := slices.Clone(servers); ; {
		left = slices.DeleteFunc(left, func(id state.ServerID) bool {
			err := do(id)
			if err != nil {
				f.cfg.Logger.Debug(what, "server", id, "error", err)
			}
			return err == nil
		})
		if len(left) == 0 {
			return true
		}
		select {
		case <-f.cfg.Context.Done():
			return false
		case <-time.After(retryInterval):
		}
	}
}

// lowestVoter is the server that founds the ensemble without some of its voters.
func (f *Founder) lowestVoter(without []state.ServerID) state.ServerID {
	lowest := state.NoServer
	for _, s := range f.cfg.Servers {
		if s.Voter && s.ID < lowest && !slices.Contains(without, s.ID) {
			lowest = s.ID
		}
	}
	return lowest
}

// votes reports whether this server is configured to vote.
func (f *Founder) votes() bool {
	return slices.ContainsFunc(f.cfg.Servers, func(s membership.Server) bool { return s.ID == f.cfg.Self && s.Voter })
}
