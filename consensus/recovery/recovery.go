// Package recovery makes one server the whole of a new ensemble, when a majority of the former one is lost for
// good. It works on the files of a server that does not run, and reports what is in them before it changes any.
//
// It decides nothing: an operator decides whether the others are lost, with the help of Ask. It starts no
// goroutine.
package recovery

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/znode"
)

// The errors of Open.
var (
	ErrNoData   = errors.New("the data directory belongs to no ensemble: there is nothing to recover from")
	ErrHasData  = errors.New("the data directory has data of an ensemble already")
	ErrFounding = errors.New("an ensemble is being founded with imported data: start its servers, to finish that")
	ErrOneVoter = errors.New("this server is its ensemble's only voter: there is nothing to be recovered")
)

// Recovery is a state from which one server can continue.
type Recovery struct {
	cfg     storage.Config
	self    state.ServerID
	machine *state.Machine
	report  Report

	skipOver int64 // bytes; see Open
}

// Report describes the state.
type Report struct {
	Ensemble [16]byte         // zero: from a backup
	Voters   []state.ServerID // of the newest configuration
	Index    uint64           // of the last entry
	Term     uint64           // highest known
	Zxid     znode.Zxid
	Time     time.Time // of the last entry, by its leader's clock
	Znodes   int
	Sessions int
	Next     uint64 // term in which the ensemble continues
	Skipped  []state.LongACL
}

// Open reads the data directory of server self, or a backup that will go into one without data. It changes nothing.
// Commands of the log whose ACLs take more than skipOver bytes are not applied, and are in Report.Skipped; 0: all
// are applied.
//
// It returns ErrNoData, ErrHasData, ErrFounding or ErrOneVoter, and errors that name what is damaged, or a directory
// that is another server's or in use.
func Open(cfg storage.Config, self state.ServerID, backup io.Reader, skipOver int64) (*Recovery, error) {
	id, err := cfg.Identity()
	r := &Recovery{cfg: cfg, self: self, skipOver: skipOver}
	switch {
	case err != nil:
		return nil, err
	case backup == nil && id == nil:
		return nil, fmt.Errorf("%w: %s", ErrNoData, cfg.Dir)
	case backup != nil && id != nil:
		return nil, fmt.Errorf("%w: %s belongs to server %d of %x", ErrHasData, cfg.Dir, id.Server, id.Ensemble)
	case id != nil && id.Seed != "":
		return nil, fmt.Errorf("%w: %s", ErrFounding, cfg.Dir)
	case id != nil && id.Server != self:
		return nil, fmt.Errorf("%s belongs to server %d, but this is server %d: check dataDir and myid",
			cfg.Dir, id.Server, self)
	case id == nil:
		r.machine, err = state.ReadSnapshot(backup)
	default:
		r.report.Ensemble = id.Ensemble
		err = r.readStore()
	}
	if err != nil {
		return nil, err
	}
	return r, r.fill()
}

func (r *Recovery) readStore() error {
	s, err := storage.Open(r.cfg)
	if err != nil {
		return err
	}
	err = r.replay(&s)
	return errors.Join(err, s.Close())
}

// replay reads the newest snapshot and applies the whole log after it. No one knows how much of that was committed;
// all that was, as far as this server has it, is included.
func (r *Recovery) replay(s *storage.Store) error {
	r.machine = state.New()
	var at uint64
	list, err := s.Snapshots.List()
	if err != nil {
		return fmt.Errorf("listing snapshots: %w", err)
	}
	if len(list) > 0 {
		meta, in, err := s.Snapshots.Open(list[0].ID)
		if err == nil {
			r.machine, err = state.ReadSnapshot(in)
			err = errors.Join(err, in.Close())
		}
		if err != nil {
			return fmt.Errorf("snapshot %s: %w", list[0].ID, err)
		}
		at, r.report.Term = meta.Index, meta.Term
	}
	last, err := s.Log.LastIndex()
	if err != nil {
		return fmt.Errorf("reading raft's log: %w", err)
	}
	for at++; at <= last; at++ {
		var l raft.Log
		err := s.Log.GetLog(at, &l)
		switch {
		case err != nil:
		case l.Type == raft.LogCommand:
			err = r.apply(&l)
		case l.Type == raft.LogConfiguration:
			r.machine.Configure(l.Index, l.Term, membership.VotersOf(raft.DecodeConfiguration(l.Data).Servers),
				state.Unobserved{})
		}
		if err != nil {
			return fmt.Errorf("entry %d of raft's log: %w", at, err)
		}
		r.report.Term = max(r.report.Term, l.Term)
	}
	r.report.Index = at - 1
	term, err := storage.Term(s.Stable)
	r.report.Term = max(r.report.Term, term)
	return err
}

// apply applies an entry unless it has to be skipped.
func (r *Recovery) apply(l *raft.Log) error {
	entry := l.Data
	if r.skipOver > 0 {
		without, skipped, err := state.WithoutACLs(l.Index, l.Data, r.skipOver)
		if err != nil {
			return err
		}
		if len(skipped) > 0 {
			entry, r.report.Skipped = without, append(r.report.Skipped, skipped...)
		}
	}
	return r.machine.Apply(l.Index, l.Term, entry, state.Unobserved{})
}

// fill completes the report.
func (r *Recovery) fill() error {
	m, x := r.machine, &r.report
	x.Voters, x.Zxid, x.Time, x.Index = m.Voters(), m.Zxid(), m.Time(), max(x.Index, m.Index())
	x.Znodes, x.Sessions = m.Tree().Size().Znodes, m.Sessions().Len()
	x.Term = max(x.Term, uint64(x.Zxid)>>32)
	x.Next = x.Term + state.TermJump
	switch {
	case x.Ensemble != [16]byte{} && len(x.Voters) == 1 && x.Voters[0] == r.self && len(x.Skipped) == 0:
		return ErrOneVoter
	case x.Next >= state.TermLimit:
		return fmt.Errorf("the term %d cannot be raised by %d: it has to stay below %d; export the tree, and import "+
			"it into a new ensemble", x.Term, state.TermJump, state.TermLimit)
	}
	return nil
}

// Report describes the state.
func (r *Recovery) Report() Report { return r.report }

// Run makes the server the only voter of a new ensemble. It returns that ensemble's id, and the name of the
// directory, in dataDir and in dataLogDir, into which it moved the former files. It can be called once.
func (r *Recovery) Run(now time.Time) (ensemble [16]byte, kept string, err error) {
	if _, err := rand.Read(ensemble[:]); err != nil {
		return ensemble, "", fmt.Errorf("making the ensemble's id: %w", err)
	}
	x := &r.report
	r.machine.Recover(r.self, x.Index+1, x.Next)
	alone := membership.ConfigurationOf([]membership.Server{{ID: r.self, Voter: true}})
	kept, err = storage.Replace(r.cfg, now, func(s *storage.Store) error {
		if err := s.Begin(r.machine, alone); err != nil {
			return err
		}
		return s.Identity.Save(storage.Identity{Ensemble: ensemble, Server: r.self})
	})
	return ensemble, kept, err
}

// Ask asks the other voters for their status, until ctx ends: those of the data, or of the configuration if these
// are not known. a.Ensemble is filled in.
func (r *Recovery) Ask(ctx context.Context, a membership.Asker, configured []membership.Server) []membership.Peer {
	a.Ensemble = r.report.Ensemble
	return a.Ask(ctx, r.others(configured))
}

func (r *Recovery) others(configured []membership.Server) (all []membership.Server) {
	members := r.machine.Members()
	for _, s := range configured {
		if s.Voter && s.ID != r.self && (len(r.report.Voters) == 0 || slices.Contains(r.report.Voters, s.ID)) {
			all = append(all, membership.Server{ID: s.ID, Addr: cmp.Or(members[s.ID].Addr, s.Addr)})
		}
	}
	for _, id := range r.report.Voters {
		known := slices.ContainsFunc(all, func(x membership.Server) bool { return x.ID == id })
		if id != r.self && !known {
			all = append(all, membership.Server{ID: id, Addr: members[id].Addr})
		}
	}
	return all
}

// Majority reports that the ensemble is not lost: one of the others has a leader, or there are enough of them for a
// majority, with this server if it has data. A server without others is recovered only from entries that it cannot
// apply.
func (r *Recovery) Majority(peers []membership.Peer) bool {
	if len(peers) == 0 && len(r.report.Skipped) > 0 {
		return false
	}
	up, voters := 0, len(r.report.Voters)
	if voters == 0 {
		voters = len(peers) + 1
	}
	if slices.Contains(r.report.Voters, r.self) && r.report.Ensemble != [16]byte{} {
		up++
	}
	for _, p := range peers {
		if p.Led {
			return true
		}
		if p.Member {
			up++
		}
	}
	return up > voters/2
}

// LongACLs returns the lists in the newest snapshot and in the log that no client could set today, of a server that
// may run. It applies nothing, and changes nothing.
func LongACLs(files storage.Config) (found []state.LongACL, err error) {
	err = files.Inspect(func(snapshot io.Reader) error {
		there, err := state.LongACLsOf(snapshot)
		found = append(found, there...)
		return err
	}, func(l *raft.Log) error {
		if l.Type != raft.LogCommand {
			return nil
		}
		there, err := state.LongACLsIn(l.Index, l.Data)
		found = append(found, there...)
		return err
	})
	return found, err
}
