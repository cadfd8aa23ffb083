package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	deliberate "github.com/zk-lite/zk-lite/internal/fault"
)

// raft's names for the values that a termStore keeps together.
const (
	keyTerm      = "CurrentTerm"
	keyVoteTerm  = "LastVoteTerm"
	keyCandidate = "LastVoteCand"
)

// keyTermAndVote is where a termStore keeps them: version u8, term u64, term of the vote u64, big-endian;
// the rest is the candidate.
var keyTermAndVote = []byte("zk-lite.term")

const (
	termVersion = 1
	termHead    = 1 + 8 + 8
)

// termStore is raft's store of term and vote. raft writes a new term, the term of its vote and the
// candidate one after the other, and each write to raft-boltdb takes two disk syncs; here all three are
// one write, so that an election takes four syncs of term and vote, one server after the other, and not
// twelve (docs/adr/0019).
//
// A new term and the term of a vote stay in memory until the candidate comes, which raft writes last, or
// until persist. INVARIANT: before anything that follows from them leaves this server, and before its log
// takes an entry, they are on disk: the transport calls persist before it sends, the watched log before it
// writes, and a vote, with which a candidate counts itself, returns when it is on disk. So a crash finds a
// server as hashicorp/raft's own order of writes might have left it: without a term that no other server
// has heard of.
type termStore struct {
	raft.StableStore // everything else

	m       *Monitor
	changed atomic.Bool // memory is ahead of the disk

	// token is held by the goroutine that uses the fields below. It is a channel, so that waiting for it
	// counts as waiting in a synctest bubble.
	token     chan struct{}
	term      uint64
	voteTerm  uint64
	candidate []byte
}

// openTerms reads term and vote, also from where raft itself has written them, as a first start and
// earlier builds do.
func openTerms(inner raft.StableStore, m *Monitor) (*termStore, error) {
	s := &termStore{StableStore: inner, m: m, token: make(chan struct{}, 1)}
	b, err := inner.Get(keyTermAndVote)
	switch {
	case errors.Is(err, raftboltdb.ErrKeyNotFound):
		err = s.readRafts()
	case err == nil && (len(b) < termHead || b[0] != termVersion):
		err = fmt.Errorf("term and vote are in a form that this version does not know: % x; "+
			"use the version that wrote them, or a later one", b[:min(len(b), termHead)])
	case err == nil:
		s.term, s.voteTerm = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
		s.candidate = b[termHead:]
	}
	if err != nil {
		return nil, fmt.Errorf("reading term and vote: %w", err)
	}
	if deliberate.On(deliberate.ForgetVote) {
		s.term, s.voteTerm = 0, 0
	}
	return s, nil
}

func (s *termStore) readRafts() error {
	var errs [3]error
	s.term, errs[0] = s.StableStore.GetUint64([]byte(keyTerm))
	s.voteTerm, errs[1] = s.StableStore.GetUint64([]byte(keyVoteTerm))
	s.candidate, errs[2] = s.StableStore.Get([]byte(keyCandidate))
	for i, err := range errs {
		if errors.Is(err, raftboltdb.ErrKeyNotFound) {
			errs[i] = nil
		}
	}
	return errors.Join(errs[:]...)
}

// SetUint64 implements raft.StableStore.
func (s *termStore) SetUint64(key []byte, value uint64) error {
	var field *uint64
	switch string(key) {
	case keyTerm:
		field = &s.term
	case keyVoteTerm:
		field = &s.voteTerm
	default:
		return s.m.retryWhileFull(func() error { return s.StableStore.SetUint64(key, value) })
	}
	s.token <- struct{}{}
	if *field != value {
		*field = value
		s.changed.Store(true)
	}
	<-s.token
	return nil
}

// GetUint64 implements raft.StableStore.
func (s *termStore) GetUint64(key []byte) (uint64, error) {
	s.token <- struct{}{}
	defer func() { <-s.token }()
	switch string(key) {
	case keyTerm:
		return s.term, nil
	case keyVoteTerm:
		return s.voteTerm, nil
	}
	return s.StableStore.GetUint64(key)
}

// Set implements raft.StableStore.
func (s *termStore) Set(key, value []byte) error {
	if string(key) != keyCandidate {
		return s.m.retryWhileFull(func() error { return s.StableStore.Set(key, value) })
	}
	s.token <- struct{}{}
	s.candidate = value
	s.changed.Store(true)
	<-s.token
	s.m.begin() // this is raft's main loop
	defer s.m.end()
	return s.persist()
}

// Get implements raft.StableStore.
func (s *termStore) Get(key []byte) ([]byte, error) {
	if string(key) != keyCandidate {
		return s.StableStore.Get(key)
	}
	s.token <- struct{}{}
	defer func() { <-s.token }()
	return s.candidate, nil
}

// persist returns when the disk has what memory had at the call.
func (s *termStore) persist() error {
	if !s.changed.Load() {
		return nil
	}
	s.token <- struct{}{}
	defer func() { <-s.token }()
	if !s.changed.Load() {
		return nil
	}
	b := append(make([]byte, 0, termHead+len(s.candidate)), termVersion)
	b = binary.BigEndian.AppendUint64(b, s.term)
	b = binary.BigEndian.AppendUint64(b, s.voteTerm)
	b = append(b, s.candidate...)
	err := s.m.retryWhileFull(func() error { return s.StableStore.Set(keyTermAndVote, b) })
	if err == nil {
		s.changed.Store(false)
	}
	return err
}
