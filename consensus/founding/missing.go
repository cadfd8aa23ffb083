package founding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/durable"
)

// An operator who cannot have all voters up for the first start names those that are missing (ADR 0028). The ensemble
// is founded with all voters of the configuration, so that two majorities always share a server, and then takes the
// vote from those that are missing. They may come with an empty disk, as every server without a vote.

// CheckMissing reports why server self may not found an ensemble of these servers without some of its voters.
func CheckMissing(servers []membership.Server, self state.ServerID, missing []state.ServerID) error {
	var voters, left []state.ServerID
	for _, s := range servers {
		if s.Voter {
			voters = append(voters, s.ID)
		}
	}
	slices.Sort(voters)
	for _, id := range missing {
		if !slices.Contains(voters, id) {
			return fmt.Errorf("server %d is no voter of the configuration: its voters are %v", id.Number(), voters)
		}
	}
	for _, id := range voters {
		if !slices.Contains(missing, id) {
			left = append(left, id)
		}
	}
	switch need := len(voters)/2 + 1; {
	case len(servers) == 1:
		return errors.New("this server is standalone: it waits for no others")
	case len(missing) == 0:
		return errors.New("name at least one missing server")
	case len(left) < need:
		return fmt.Errorf("without servers %v, %d of %d voters are left, and that is no majority: start %d more of "+
			"them, and name those that are still missing", missing, len(left), len(voters), need-len(left))
	case left[0] != self:
		return fmt.Errorf("server %d, the voter with the lowest id that is left, forms the ensemble: run this there, "+
			"not on server %d", left[0], self)
	}
	return nil
}

// mayBeMissing returns the voters that an operator has named. An error reports why they cannot be missing.
func (f *Founder) mayBeMissing() ([]state.ServerID, error) {
	missing, err := f.missing.Load()
	if err == nil && len(missing) > 0 {
		if err = CheckMissing(f.cfg.Servers, f.cfg.Self, missing); err != nil {
			err = fmt.Errorf("%s: %w", f.missing, err)
		}
	}
	return missing, err
}

// The errors that say that there is nothing to found.
var (
	ErrHasData = errors.New("this server belongs to an ensemble already")
	ErrExists  = errors.New("the ensemble exists already")
	ErrAnswers = errors.New("a server that is named is up")
)

// Plan is an operator's, to found an ensemble although some of its voters are missing. The founder may run or not.
type Plan struct {
	cfg     storage.Config
	self    state.ServerID
	servers []membership.Server
	missing []state.ServerID
}

// NewPlan checks whether server self, with the data directory of cfg, can found an ensemble of servers without those
// that are missing. It changes nothing.
//
// Errors: ErrHasData; those of CheckMissing; what is wrong with the directory.
func NewPlan(cfg storage.Config, self state.ServerID, servers []membership.Server, missing []state.ServerID) (
	*Plan, error,
) {
	switch id, err := cfg.Identity(); {
	case err != nil:
		return nil, err
	case id != nil:
		return nil, fmt.Errorf("%w: %s has data of ensemble %x", ErrHasData, cfg.Dir, id.Ensemble)
	}
	if err := CheckMissing(servers, self, missing); err != nil {
		return nil, err
	}
	return &Plan{cfg, self, servers, missing}, nil
}

// Ask asks the other servers for their state, until ctx ends.
func (p *Plan) Ask(ctx context.Context, a membership.Asker) []membership.Peer {
	others := slices.DeleteFunc(slices.Clone(p.servers), func(s membership.Server) bool { return s.ID == p.self })
	return a.Ask(ctx, others)
}

// Named reports whether the operator has named a server.
func (p *Plan) Named(id state.ServerID) bool { return slices.Contains(p.missing, id) }

// Check reports what is in the way, by what the others have answered: ErrExists, or ErrAnswers.
func (p *Plan) Check(peers []membership.Peer) error {
	for _, x := range peers {
		if x.Member {
			return fmt.Errorf("%w: server %d is a member of one", ErrExists, x.ID)
		}
	}
	for _, x := range peers {
		if p.Named(x.ID) && x.Err == nil {
			return fmt.Errorf("%w: server %d answers", ErrAnswers, x.ID)
		}
	}
	return nil
}

// Write writes the plan to where the founder finds it.
func (p *Plan) Write() error { return FileIn(p.cfg.Dir).Save(p.missing) }

// File keeps the voters without which an ensemble may be founded, as an operator has asked (`zk-lite form`). The
// founder reads it before it begins, and until it is done. The zero value keeps nothing.
type File string

const fileName = "form.json"

// fileVersion is that of form.json.
const fileVersion = 1

type fileJSON struct {
	Version int              `json:"version"`
	Without []state.ServerID `json:"without"`
}

// FileIn returns the file of a data directory, and for an empty one the zero value.
func FileIn(dir string) File {
	if dir == "" {
		return ""
	}
	return File(filepath.Join(dir, fileName))
}

// Load returns the voters that may be missing; none without a file. An error names the file.
func (f File) Load() ([]state.ServerID, error) {
	if f == "" {
		return nil, nil
	}
	b, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var j fileJSON
	if err == nil {
		err = json.Unmarshal(b, &j)
	}
	if err == nil && j.Version != fileVersion {
		err = fmt.Errorf("it has version %d, and this release reads version %d", j.Version, fileVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, which `zk-lite form` writes, is invalid: %w; delete it and run `zk-lite form` "+
			"again", string(f), err)
	}
	return j.Without, nil
}

// Save returns when it is durable.
func (f File) Save(without []state.ServerID) error {
	b, err := json.Marshal(fileJSON{fileVersion, without})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(string(f)), 0o700)
	}
	if err == nil {
		err = durable.WriteFile(string(f), append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", string(f), err)
	}
	return nil
}

// Remove removes the file, if there is one.
func (f File) Remove() error {
	if err := os.Remove(string(f)); f != "" && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
