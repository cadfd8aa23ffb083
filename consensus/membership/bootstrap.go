package membership

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// An ensemble is bootstrapped once, when all its voters start with empty data
// directories. The voter with the lowest id does it, the bootstrapper:
//
//  1. it asks every other voter; all must answer that they are fresh;
//  2. it notes on disk that it is bootstrapping ensemble X (a random id);
//  3. it sends every voter "you are server N of X", which each notes on disk;
//  4. when all have confirmed, it removes the note that it is bootstrapping.
//
// A crash in between is made good by doing 3 again. Every server bootstraps
// raft with the same configuration when it learns of X. Voters that an operator
// has named may be missing (form.go).
//
// A fresh server that finds an ensemble that exists, and is no longer being bootstrapped, had its
// disk wiped: it may have voted, and acknowledged what it does not have any
// more. Letting it vote again could lose acknowledged writes, so it is
// refused, as is a server that is asked to join another ensemble than its own.

const (
	bootstrapInterval = 50 * time.Millisecond // between two rounds of asking
	bootstrapRemind   = 5 * time.Second       // between two log lines about waiting
)

// errWiped reports that this server must not take part.
var errWiped = errors.New("this server's data directory is empty, but the ensemble exists")

// bootstrapper knows to which ensemble this server belongs.
type bootstrapper struct {
	cfg       *Config
	control   *control
	identity  atomic.Pointer[storage.Identity]
	waiting   atomic.Pointer[string] // for what, before it has an identity; nil: not known yet
	accepted  chan storage.Identity  // capacity 1: another server has bootstrapped this one
	accepting chan struct{}          // has room for one request to bootstrap; no mutex: its owner waits for the disk
}

// Join notes to which ensemble this server belongs.
func (b *bootstrapper) Join(id storage.Identity) {
	b.cfg.Keys.SetMember()
	b.identity.Store(&id)
}

// Waiting returns what this server waits for before it belongs to an ensemble; empty: it has not asked yet, or does.
func (b *bootstrapper) Waiting() string {
	if text := b.waiting.Load(); text != nil && b.Identity() == nil {
		return *text
	}
	return ""
}

// Identity returns to which ensemble this server belongs; nil: none yet.
func (b *bootstrapper) Identity() *storage.Identity { return b.identity.Load() }

func (b *bootstrapper) standalone() bool { return b.cfg.Standalone }

func (b *bootstrapper) self() Server {
	for _, s := range b.cfg.Servers {
		if s.ID == b.cfg.Self {
			return s
		}
	}
	return Server{}
}

// lowestVoter is the server that bootstraps the ensemble without some of its voters.
func (b *bootstrapper) lowestVoter(without []state.ServerID) state.ServerID {
	lowest := state.NoServer
	for _, s := range b.cfg.Servers {
		if s.Voter && s.ID < lowest && !slices.Contains(without, s.ID) {
			lowest = s.ID
		}
	}
	return lowest
}

// Bootstrap waits until this server belongs to an ensemble and returns its identity.
func (b *bootstrapper) Bootstrap() (storage.Identity, error) {
	if b.standalone() {
		return b.BootstrapSelf(newEnsemble(), false)
	}
	reminded := time.Now()
	for {
		id, waiting, err := b.BootstrapRound()
		switch {
		case err != nil:
			return storage.Identity{}, err
		case id != nil:
			return *id, nil
		}
		b.waiting.Store(&waiting)
		if time.Since(reminded) >= bootstrapRemind {
			reminded = time.Now()
			b.cfg.Logger.Info("waiting to form the ensemble: all its voters must be up", "waiting", waiting)
		}
		select {
		case <-b.cfg.Context.Done():
			return storage.Identity{}, context.Cause(b.cfg.Context)
		case id := <-b.accepted:
			return id, nil
		case <-time.After(bootstrapInterval):
		}
	}
}

// BootstrapRound is one round of Bootstrap: it asks all others once. It returns the identity if this server has
// one now, or what it is waiting for.
func (b *bootstrapper) BootstrapRound() (*storage.Identity, string, error) {
	without, err := b.excused()
	if err != nil {
		return nil, err.Error(), nil
	}
	r := &round{
		bootstrapper: b, without: without, first: b.lowestVoter(without) == b.cfg.Self,
		keys: b.newTable(), secret: b.cfg.Keys.HasSecret(),
	}
	for _, s := range b.cfg.Servers {
		if s.ID == b.cfg.Self {
			continue
		}
		if id, err := r.ask(s); id != nil || err != nil {
			return id, "", err
		}
	}
	switch {
	case r.wiped != nil && !r.forming:
		return nil, "", r.wiped
	case len(r.missing) > 0:
		return nil, strings.Join(slices.Compact(r.missing), "; "), nil // members give the same answer
	case b.lowestVoter(r.absent) != b.cfg.Self:
		return nil, "for the voter with the lowest id", nil
	}
	if len(without) > 0 {
		b.cfg.Logger.Warn("forming the ensemble without all its voters", "missing", r.absent)
		if err := b.cfg.Store.Form.Save(r.absent); err != nil { // what finishBootstrap goes by
			return nil, "", err
		}
	}
	if b.cfg.Keys != nil {
		if err := b.cfg.Keys.Adopt(r.keys); err != nil {
			return nil, "", err
		}
	}
	id, err := b.BootstrapSelf(newEnsemble(), true)
	return &id, "", err
}

func newEnsemble() (id [16]byte) {
	if _, err := rand.Read(id[:]); err != nil {
		panic(fmt.Sprintf("membership: the system gives no random bytes: %v", err))
	}
	return id
}

// adoptEnsemble notes that this server belongs to an ensemble that exists. Raft's
// configuration comes with the log.
func (b *bootstrapper) adoptEnsemble(ensemble [16]byte) (storage.Identity, error) {
	id := storage.Identity{Ensemble: ensemble, Server: b.cfg.Self}
	return id, b.cfg.Store.Identity.Save(id)
}

// BootstrapSelf notes that this server belongs to an ensemble that is being bootstrapped, and
// gives raft its first configuration.
func (b *bootstrapper) BootstrapSelf(ensemble [16]byte, bootstrapping bool) (storage.Identity, error) {
	id := storage.Identity{Ensemble: ensemble, Server: b.cfg.Self, Bootstrapping: bootstrapping}
	if err := b.bootstrapRaft(); err != nil {
		return id, err
	}
	return id, b.cfg.Store.Identity.Save(id)
}

// bootstrapRaft writes raft's first configuration. It may have done so before a
// crash, in which case it is there.
func (b *bootstrapper) bootstrapRaft() error {
	s := b.cfg.Store
	exists, err := raft.HasExistingState(s.Log, s.Stable, s.Snapshots)
	if err != nil {
		return fmt.Errorf("looking for raft's state: %w", err)
	}
	if exists {
		return nil
	}
	var c raft.Configuration
	for _, x := range b.cfg.Servers {
		suffrage := raft.Nonvoter
		if x.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: suffrage, ID: transport.RaftID(uint64(x.ID)), Address: raft.ServerAddress(AddressOf(x.ID)),
		})
	}
	if err := raft.BootstrapCluster(b.cfg.RaftConfig, s.Log, s.Stable, s.Snapshots, b.cfg.Transport, c); err != nil {
		return fmt.Errorf("bootstrapping raft: %w", err)
	}
	return nil
}

// finishBootstrap asks every voter to join the ensemble, until all have, and has those that are missing left out.
func (b *bootstrapper) finishBootstrap(id storage.Identity, leaveOut func(state.ServerID) error) {
	without, err := b.cfg.Store.Form.Load()
	if err != nil {
		b.cfg.Fatal(err)
		return
	}
	var present []state.ServerID
	for _, s := range b.cfg.Servers {
		if s.Voter && s.ID != b.cfg.Self && !slices.Contains(without, s.ID) {
			present = append(present, s.ID)
		}
	}
	request := controlRequest{
		Op: controlBootstrap, Ensemble: fmt.Sprintf("%x", id.Ensemble), Keys: b.cfg.Keys.Table(),
	}
	join := func(to state.ServerID) error {
		_, err := b.control.ask(b.cfg.Context, to, request)
		return err
	}
	if !b.untilDone("asking a server to join the new ensemble", present, join) ||
		!b.untilDone("leaving a missing server out", without, leaveOut) {
		return
	}
	id.Bootstrapping = false
	if err := b.cfg.Store.Identity.Save(id); err != nil {
		b.cfg.Fatal(err)
		return
	}
	b.identity.Store(&id)
	if err := b.cfg.Store.Form.Remove(); err != nil {
		b.cfg.Logger.Warn("a file that is of no use any more stays", "error", err)
	}
	b.cfg.Logger.Info("ensemble formed", "ensemble", fmt.Sprintf("%x", id.Ensemble))
}

// untilDone repeats what is to be done for each of some servers until it was; false: the node ends before.
func (b *bootstrapper) untilDone(what string, servers []state.ServerID, do func(state.ServerID) error) bool {
	for left := slices.Clone(servers); ; {
		left = slices.DeleteFunc(left, func(id state.ServerID) bool {
			err := do(id)
			if err != nil {
				b.cfg.Logger.Debug(what, "server", id, "error", err)
			}
			return err == nil
		})
		if len(left) == 0 {
			return true
		}
		select {
		case <-b.cfg.Context.Done():
			return false
		case <-time.After(bootstrapInterval):
		}
	}
}

// checkOthers asks the other voters until one is in this server's ensemble. A
// server that most of them refuse has the wrong data directory, or is in the
// wrong configuration, and ends rather than ask for ever.
func (b *bootstrapper) checkOthers(id storage.Identity) {
	tick := time.NewTicker(b.cfg.ElectionTimeout)
	defer tick.Stop()
	var warned time.Time
	for {
		voters, foreign := 0, []state.ServerID(nil)
		for _, s := range b.cfg.Servers {
			if s.Voter {
				voters++
			}
			if !s.Voter || s.ID == b.cfg.Self {
				continue
			}
			reply, err := b.control.ask(b.cfg.Context, s.ID, controlRequest{Op: controlWho})
			if isRefusal(&reply, err) {
				if b.cfg.Keys.HasSecret() {
					reply, err = b.join(s.ID, false)
				}
				if err != nil && time.Since(warned) >= bootstrapRemind {
					warned = time.Now()
					b.warnRefused(s.ID, err)
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
			b.cfg.Fatal(fmt.Errorf("this server's data directory belongs to ensemble %x, but servers %v "+
				"belong to another ensemble: check dataDir, and the addresses in the configuration; the directory of "+
				"a former ensemble is to be emptied, but for myid", id.Ensemble, foreign))
			return
		}
		select {
		case <-b.cfg.Context.Done():
			return
		case <-tick.C:
		}
	}
}

// warnRefused says why another server may have refused this one. Where the others show other keys than this server's
// directory has, a token would be of no use.
func (b *bootstrapper) warnRefused(by state.ServerID, err error) {
	known, strange := false, false
	for _, s := range b.cfg.Servers {
		bound, another := b.cfg.Keys.ShownBy(s.ID)
		known, strange = known || bound, strange || another
	}
	if strange && !known {
		b.cfg.Logger.Warn("another server does not let this one in, and no server shows the key that dataDir has of "+
			"it: the directory is of a former ensemble, or of another one; empty it but for myid, or correct dataDir",
			"server", by, "error", err)
		return
	}
	b.cfg.Logger.Warn("another server does not let this one in: its key is not the one bound to it; "+
		"`zk-lite member token` makes a token, for the file of peer.joinSecretFile", "server", by, "error", err)
}

// acceptBootstrap makes this server a member of the ensemble that another bootstraps.
func (b *bootstrapper) acceptBootstrap(conn *mux.Conn, req *controlRequest) error {
	want, err := storage.ParseEnsemble(req.Ensemble)
	if err != nil {
		return err
	}
	b.accepting <- struct{}{}
	defer func() { <-b.accepting }()
	if have := b.identity.Load(); have != nil {
		if have.Ensemble != want {
			return fmt.Errorf("this server belongs to ensemble %x", have.Ensemble)
		}
		return nil
	}
	if key, secure := b.cfg.Keys.KeyOf(conn.Conn); secure {
		if err := b.adoptKeys(req.Keys, req.From, &key); err != nil {
			return err
		}
	}
	id, err := b.BootstrapSelf(want, false)
	if err != nil {
		return err
	}
	b.Join(id)
	b.accepted <- id
	return nil
}
