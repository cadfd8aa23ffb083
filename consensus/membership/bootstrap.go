package membership

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
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
// raft with the same configuration when it learns of X.
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

// Bootstrap waits until this server belongs to an ensemble and returns its identity.
func (e *Ensemble) Bootstrap() (storage.Identity, error) {
	if e.standalone() {
		return e.BootstrapSelf(newEnsemble(), false)
	}
	bootstrapper := e.lowestVoter() == e.cfg.Self
	reminded := time.Now()
	for {
		id, waiting, err := e.BootstrapRound(bootstrapper)
		switch {
		case err != nil:
			return storage.Identity{}, err
		case id != nil:
			return *id, nil
		}
		if time.Since(reminded) >= bootstrapRemind {
			reminded = time.Now()
			e.cfg.Logger.Info("waiting to form the ensemble: all its voters must be up", "waiting", waiting)
		}
		select {
		case <-e.cfg.Context.Done():
			return storage.Identity{}, context.Cause(e.cfg.Context)
		case id := <-e.accepted:
			return id, nil
		case <-time.After(bootstrapInterval):
		}
	}
}

// BootstrapRound is one round of Bootstrap: it asks all others once. It returns the identity if this server has
// one now, or what it is waiting for.
func (e *Ensemble) BootstrapRound(bootstrapper bool) (*storage.Identity, string, error) {
	var missing []string // what there is to wait for
	for _, s := range e.cfg.Servers {
		if s.ID == e.cfg.Self {
			continue
		}
		reply, err := e.ask(e.cfg.Context, s.ID, controlRequest{Op: controlWho})
		switch {
		case err != nil:
			if s.Voter {
				missing = append(missing, fmt.Sprintf("for server %d (%s): %v", s.ID, s.Addr, err))
			}
		case reply.Ensemble != "" && !reply.Bootstrapping:
			ensemble, err := storage.ParseEnsemble(reply.Ensemble)
			if err != nil {
				return nil, "", fmt.Errorf("server %d: %w", s.ID, err)
			}
			if !e.self().Voter || reply.Suffrage == nonvoter {
				// A server that does not vote has acknowledged nothing that counts.
				id, err := e.adoptEnsemble(ensemble)
				return &id, "", err
			}
			if reply.Suffrage == notMember {
				missing = append(missing, fmt.Sprintf("to be added to ensemble %s, of which server %d "+
					"is not a member", reply.Ensemble, e.cfg.Self))
				continue
			}
			if id := e.identity.Load(); id != nil {
				// The answer was given after this server had been asked to join.
				return id, "", nil
			}
			if bootstrapper || s.ID == e.lowestVoter() {
				// The bootstrapper is the last to note that all is done.
				return nil, "", fmt.Errorf("%w: server %d is in ensemble %s. If its disk was "+
					"replaced, remove server %d from the ensemble and add it again; if it holds "+
					"the wrong directory, set dataDir", errWiped, s.ID, reply.Ensemble, e.cfg.Self)
			}
		}
	}
	switch {
	case len(missing) > 0:
		return nil, strings.Join(slices.Compact(missing), "; "), nil // members give the same answer
	case !bootstrapper:
		return nil, "for the voter with the lowest id", nil
	}
	id, err := e.BootstrapSelf(newEnsemble(), true)
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
func (e *Ensemble) adoptEnsemble(ensemble [16]byte) (storage.Identity, error) {
	id := storage.Identity{Ensemble: ensemble, Server: e.cfg.Self}
	return id, e.cfg.Store.Identity.Save(id)
}

// BootstrapSelf notes that this server belongs to an ensemble that is being bootstrapped, and
// gives raft its first configuration.
func (e *Ensemble) BootstrapSelf(ensemble [16]byte, bootstrapping bool) (storage.Identity, error) {
	id := storage.Identity{Ensemble: ensemble, Server: e.cfg.Self, Bootstrapping: bootstrapping}
	if err := e.bootstrapRaft(); err != nil {
		return id, err
	}
	return id, e.cfg.Store.Identity.Save(id)
}

// bootstrapRaft writes raft's first configuration. It may have done so before a
// crash, in which case it is there.
func (e *Ensemble) bootstrapRaft() error {
	s := e.cfg.Store
	exists, err := raft.HasExistingState(s.Log, s.Stable, s.Snapshots)
	if err != nil {
		return fmt.Errorf("looking for raft's state: %w", err)
	}
	if exists {
		return nil
	}
	var c raft.Configuration
	for _, x := range e.cfg.Servers {
		suffrage := raft.Nonvoter
		if x.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: suffrage, ID: transport.RaftID(uint64(x.ID)), Address: raft.ServerAddress(AddressOf(x.ID)),
		})
	}
	if err := raft.BootstrapCluster(e.cfg.RaftConfig, s.Log, s.Stable, s.Snapshots, e.cfg.Transport, c); err != nil {
		return fmt.Errorf("bootstrapping raft: %w", err)
	}
	return nil
}

// finishBootstrap asks every voter to join the ensemble, until all have.
func (e *Ensemble) finishBootstrap(id storage.Identity) {
	request := controlRequest{Op: controlBootstrap, Ensemble: fmt.Sprintf("%x", id.Ensemble)}
	joined := map[state.ServerID]bool{e.cfg.Self: true}
	for left := true; left; {
		left = false
		for _, s := range e.cfg.Servers {
			if joined[s.ID] || !s.Voter {
				continue
			}
			if _, err := e.ask(e.cfg.Context, s.ID, request); err != nil {
				left = true
				e.cfg.Logger.Debug("asking a server to join the new ensemble", "server", s.ID, "error", err)
				continue
			}
			joined[s.ID] = true
		}
		if left {
			select {
			case <-e.cfg.Context.Done():
				return
			case <-time.After(bootstrapInterval):
			}
		}
	}
	id.Bootstrapping = false
	if err := e.cfg.Store.Identity.Save(id); err != nil {
		e.cfg.Fatal(err)
		return
	}
	e.identity.Store(&id)
	e.cfg.Logger.Info("ensemble formed", "ensemble", fmt.Sprintf("%x", id.Ensemble))
}

// checkOthers asks the other voters until one is in this server's ensemble. A
// server that most of them refuse has the wrong data directory, or is in the
// wrong configuration, and ends rather than ask for ever.
func (e *Ensemble) checkOthers(id storage.Identity) {
	tick := time.NewTicker(e.cfg.ElectionTimeout)
	defer tick.Stop()
	for {
		voters, foreign := 0, []state.ServerID(nil)
		for _, s := range e.cfg.Servers {
			if s.Voter {
				voters++
			}
			if !s.Voter || s.ID == e.cfg.Self {
				continue
			}
			reply, err := e.ask(e.cfg.Context, s.ID, controlRequest{Op: controlWho})
			var refused *mux.RefusedError
			switch {
			case err == nil && reply.Ensemble == fmt.Sprintf("%x", id.Ensemble):
				return
			case errors.As(err, &refused) && refused.Code == mux.RefusedEnsemble:
				foreign = append(foreign, s.ID)
			}
		}
		if len(foreign) > voters/2 {
			e.cfg.Fatal(fmt.Errorf("this server's data directory belongs to ensemble %x, but servers %v "+
				"belong to another ensemble: check dataDir, and the addresses in the configuration",
				id.Ensemble, foreign))
			return
		}
		select {
		case <-e.cfg.Context.Done():
			return
		case <-tick.C:
		}
	}
}

// acceptBootstrap makes this server a member of the ensemble that another bootstraps.
func (e *Ensemble) acceptBootstrap(ensemble string) error {
	want, err := storage.ParseEnsemble(ensemble)
	if err != nil {
		return err
	}
	e.accepting.Lock()
	defer e.accepting.Unlock()
	if have := e.identity.Load(); have != nil {
		if have.Ensemble != want {
			return fmt.Errorf("this server belongs to ensemble %x", have.Ensemble)
		}
		return nil
	}
	id, err := e.BootstrapSelf(want, false)
	if err != nil {
		return err
	}
	e.identity.Store(&id)
	e.accepted <- id
	return nil
}
