package membership

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// bootstrapper knows to which ensemble this server belongs.
type bootstrapper struct {
	cfg       *Config
	control   *control
	identity  atomic.Pointer[storage.Identity]
	accepted  chan storage.Identity // capacity 1: another server has bootstrapped this one
	accepting sync.Mutex            // one request to bootstrap at a time
}

// Join notes to which ensemble this server belongs.
func (b *bootstrapper) Join(id storage.Identity) {
	b.cfg.Keys.SetMember()
	b.identity.Store(&id)
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

// lowestVoter is the server that bootstraps the ensemble.
func (b *bootstrapper) lowestVoter() state.ServerID {
	lowest := state.NoServer
	for _, s := range b.cfg.Servers {
		if s.Voter && s.ID < lowest {
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
	first := b.lowestVoter() == b.cfg.Self
	reminded := time.Now()
	for {
		id, waiting, err := b.BootstrapRound(first)
		switch {
		case err != nil:
			return storage.Identity{}, err
		case id != nil:
			return *id, nil
		}
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
// one now, or what it is waiting for. first: this is the server that bootstraps.
func (b *bootstrapper) BootstrapRound(first bool) (*storage.Identity, string, error) {
	var missing []string // what there is to wait for
	keys, secret := b.newTable(), b.cfg.Keys.HasSecret()
	for _, s := range b.cfg.Servers {
		if s.ID == b.cfg.Self {
			continue
		}
		reply, err := b.control.ask(b.cfg.Context, s.ID, controlRequest{Op: controlWho})
		formed := isRefusal(&reply, err) || reply.Ensemble != "" && !reply.Bootstrapping
		if secret && formed && b.identity.Load() == nil {
			reply, err = b.join(s.ID, true)
		}
		switch {
		case formed && err != nil && (reply.NotLeader || !isRefusal(&reply, err)):
			missing = append(missing, fmt.Sprintf("for server %d, which has data, to let it in, for which it needs a "+
				"leader (%v): start a majority with its data; if that is lost for good: `zk-lite recover`", s.ID, err))
		case isRefusal(&reply, err):
			missing = append(missing, fmt.Sprintf("to be let in, for %v; server %d refuses the new key of server "+
				"%[3]d: `zk-lite member add` or `zk-lite member token %[3]d` makes a token, for the file of "+
				"peer.joinSecretFile (%v)",
				errWiped, s.ID, b.cfg.Self, err))
		case err != nil:
			if s.Voter {
				missing = append(missing, fmt.Sprintf("for server %d (%s): %v", s.ID, s.Addr, err))
			}
		case reply.Ensemble != "" && !reply.Bootstrapping:
			ensemble, err := storage.ParseEnsemble(reply.Ensemble)
			if err != nil {
				return nil, "", fmt.Errorf("server %d: %w", s.ID, err)
			}
			if !b.self().Voter || reply.Suffrage == nonvoter {
				// A server that does not vote has acknowledged nothing that counts.
				if err := b.adoptKeys(reply.Keys, s.ID, reply.key); err != nil {
					return nil, err.Error(), nil
				}
				id, err := b.adoptEnsemble(ensemble)
				return &id, "", err
			}
			if reply.Suffrage == notMember {
				missing = append(missing, fmt.Sprintf("to be added to ensemble %s, of which server %d "+
					"is not a member", reply.Ensemble, b.cfg.Self))
				continue
			}
			if id := b.identity.Load(); id != nil {
				// The answer was given after this server had been asked to join.
				return id, "", nil
			}
			if first || s.ID == b.lowestVoter() {
				// The bootstrapper is the last to note that all is done.
				return nil, "", fmt.Errorf("%w: server %d is in ensemble %s. If its disk was "+
					"replaced, remove server %d from the ensemble and add it again; if it holds "+
					"the wrong directory, set dataDir", errWiped, s.ID, reply.Ensemble, b.cfg.Self)
			}
		case secret && !reply.proved:
			missing = append(missing,
				fmt.Sprintf("for server %d (%s) to prove that it knows the join secret", s.ID, s.Addr))
		case reply.key != nil:
			keys.Keys[s.ID] = *reply.key
		}
	}
	switch {
	case len(missing) > 0:
		return nil, strings.Join(slices.Compact(missing), "; "), nil // members give the same answer
	case !first:
		return nil, "for the voter with the lowest id", nil
	}
	if b.cfg.Keys != nil {
		if err := b.cfg.Keys.Adopt(keys); err != nil {
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

// finishBootstrap asks every voter to join the ensemble, until all have.
func (b *bootstrapper) finishBootstrap(id storage.Identity) {
	request := controlRequest{
		Op: controlBootstrap, Ensemble: fmt.Sprintf("%x", id.Ensemble), Keys: b.cfg.Keys.Table(),
	}
	joined := map[state.ServerID]bool{b.cfg.Self: true}
	for left := true; left; {
		left = false
		for _, s := range b.cfg.Servers {
			if joined[s.ID] || !s.Voter {
				continue
			}
			if _, err := b.control.ask(b.cfg.Context, s.ID, request); err != nil {
				left = true
				b.cfg.Logger.Debug("asking a server to join the new ensemble", "server", s.ID, "error", err)
				continue
			}
			joined[s.ID] = true
		}
		if left {
			select {
			case <-b.cfg.Context.Done():
				return
			case <-time.After(bootstrapInterval):
			}
		}
	}
	id.Bootstrapping = false
	if err := b.cfg.Store.Identity.Save(id); err != nil {
		b.cfg.Fatal(err)
		return
	}
	b.identity.Store(&id)
	b.cfg.Logger.Info("ensemble formed", "ensemble", fmt.Sprintf("%x", id.Ensemble))
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
					b.cfg.Logger.Warn("another server does not let this one in: its key is not the one bound to it; "+
						"`zk-lite member token` makes a token, for the file of peer.joinSecretFile",
						"server", s.ID, "error", err)
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
				"belong to another ensemble: check dataDir, and the addresses in the configuration",
				id.Ensemble, foreign))
			return
		}
		select {
		case <-b.cfg.Context.Done():
			return
		case <-tick.C:
		}
	}
}

// acceptBootstrap makes this server a member of the ensemble that another bootstraps.
func (b *bootstrapper) acceptBootstrap(conn *mux.Conn, req *controlRequest) error {
	want, err := storage.ParseEnsemble(req.Ensemble)
	if err != nil {
		return err
	}
	b.accepting.Lock()
	defer b.accepting.Unlock()
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
