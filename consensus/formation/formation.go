// Package formation is an operator's word that an ensemble is to be formed without some of its voters: it says what is
// in the way, and writes the word to where the server that forms the ensemble finds it, whether that runs or not.
//
// It forms nothing: package membership does, with the same checks. It has no goroutine but those of the question to the
// others, which end with it.
package formation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
)

// The errors that say that there is nothing to form.
var (
	ErrHasData = errors.New("this server belongs to an ensemble already")
	ErrExists  = errors.New("the ensemble exists already")
	ErrAnswers = errors.New("a server that is named is up")
)

// Formation is an ensemble that is to be formed without some of its voters.
type Formation struct {
	cfg     storage.Config
	self    state.ServerID
	servers []membership.Server
	without []state.ServerID
}

// New looks whether server self, with the data directory of cfg, can form an ensemble of servers without some of its
// voters. It changes nothing.
//
// Errors: ErrHasData; those of membership.CheckForm; what is wrong with the directory.
func New(cfg storage.Config, self state.ServerID, servers []membership.Server, without []state.ServerID) (
	*Formation, error,
) {
	switch id, err := cfg.Identity(); {
	case err != nil:
		return nil, err
	case id != nil:
		return nil, fmt.Errorf("%w: %s has data of ensemble %x", ErrHasData, cfg.Dir, id.Ensemble)
	}
	if err := membership.CheckForm(servers, self, without); err != nil {
		return nil, err
	}
	return &Formation{cfg, self, servers, without}, nil
}

// Ask asks the other servers how they are, until ctx ends.
func (f *Formation) Ask(ctx context.Context, a membership.Asker) []membership.Peer {
	others := slices.DeleteFunc(slices.Clone(f.servers), func(s membership.Server) bool { return s.ID == f.self })
	return a.Ask(ctx, others)
}

// Named reports whether the operator has named a server.
func (f *Formation) Named(id state.ServerID) bool { return slices.Contains(f.without, id) }

// Check reports what is in the way, by what the others have said: ErrExists, or ErrAnswers.
func (f *Formation) Check(peers []membership.Peer) error {
	for _, p := range peers {
		if p.Member {
			return fmt.Errorf("%w: server %d is a member of one", ErrExists, p.ID)
		}
	}
	for _, p := range peers {
		if f.Named(p.ID) && p.Err == nil {
			return fmt.Errorf("%w: server %d answers", ErrAnswers, p.ID)
		}
	}
	return nil
}

// Write writes the word down.
func (f *Formation) Write() error { return f.cfg.Form().Save(f.without) }
