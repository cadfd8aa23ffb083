package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// recordedStable is a store of term and vote in memory that notes the keys it is given.
type recordedStable struct {
	mu     sync.Mutex // protects the fields below
	values map[string][]byte
	keys   []string
}

func (r *recordedStable) Set(key, value []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil {
		r.values = map[string][]byte{}
	}
	r.values[string(key)] = bytes.Clone(value)
	r.keys = append(r.keys, string(key))
	return nil
}

func (r *recordedStable) Get(key []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, ok := r.values[string(key)]; ok {
		return b, nil
	}
	return nil, raftboltdb.ErrKeyNotFound
}

func (r *recordedStable) SetUint64(key []byte, value uint64) error {
	return r.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

func (r *recordedStable) GetUint64(key []byte) (uint64, error) {
	b, err := r.Get(key)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b), nil
}

func (r *recordedStable) written() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.keys)
}

func newTestMonitor(stable raft.StableStore) *Monitor {
	return NewMonitor(MonitorConfig{
		Store: &Store{Stable: stable}, ElectionTimeout: time.Second, Stopping: context.Background(),
		Fatal: func(err error) { panic(err) },
	})
}

func openTestTerms(t *testing.T, stable raft.StableStore) (*Monitor, raft.StableStore) {
	t.Helper()
	m := newTestMonitor(stable)
	s, err := m.Stable()
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

func wantTerms(t *testing.T, s raft.StableStore, term, voteTerm uint64, candidate string) {
	t.Helper()
	haveTerm, err1 := s.GetUint64([]byte(keyTerm))
	haveVote, err2 := s.GetUint64([]byte(keyVoteTerm))
	have, err3 := s.Get([]byte(keyCandidate))
	if err1 != nil || err2 != nil || err3 != nil || haveTerm != term || haveVote != voteTerm || string(have) != candidate {
		t.Errorf("term %d, vote in %d for %q (%v, %v, %v), want %d, %d, %q",
			haveTerm, haveVote, have, err1, err2, err3, term, voteTerm, candidate)
	}
}

// raft's own writes, in the order on which a termStore relies: a server that votes writes the candidate last.
// Method: a lone server is elected.
func TestReliesOn_TermAndVote_CandidateComesLast(t *testing.T) {
	stable, store := &recordedStable{}, raft.NewInmemStore()
	addr, transport := raft.NewInmemTransport("a")
	c := raft.DefaultConfig()
	c.LocalID, c.LogOutput = "a", io.Discard
	c.HeartbeatTimeout, c.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond
	c.ElectionTimeout = time.Hour // it votes for itself at once, and once
	snapshots := raft.NewInmemSnapshotStore()
	servers := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: addr}}}
	if err := raft.BootstrapCluster(c, store, stable, snapshots, transport, servers); err != nil {
		t.Fatal(err)
	}
	r, err := raft.NewRaft(c, nil, store, stable, snapshots, transport)
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "raft leads", func() bool { return r.State() == raft.Leader })
	if err := r.Shutdown().Error(); err != nil {
		t.Fatal(err)
	}
	want := []string{keyTerm, keyTerm, keyTerm, keyVoteTerm, keyCandidate} // the first two from the start
	if have := stable.written(); !slices.Equal(have, want) {
		t.Errorf("raft wrote %q, want %q", have, want)
	}
}

// An election took twelve syncs of term and vote, since raft writes three values one by one, and each write
// takes two.
func TestTerms_Vote_IsOneWrite(t *testing.T) {
	stable := &recordedStable{}
	_, s := openTestTerms(t, stable)
	for _, err := range []error{
		s.SetUint64([]byte(keyTerm), 7), s.SetUint64([]byte(keyVoteTerm), 7), s.Set([]byte(keyCandidate), []byte("b")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if have := stable.written(); len(have) != 1 {
		t.Errorf("written: %q, want one write", have)
	}
	wantTerms(t, s, 7, 7, "b")
	_, s = openTestTerms(t, stable)
	wantTerms(t, s, 7, 7, "b")
}

// A term alone is on the disk when PersistTerm returns, and when the log takes an entry.
func TestTerms_TermAlone_IsPersisted(t *testing.T) {
	for name, persist := range map[string]func(*Monitor) error{
		"before a message": func(m *Monitor) error { m.PersistTerm(); return nil },
		"before an entry":  func(m *Monitor) error { return m.Log().StoreLog(&raft.Log{Index: 1, Term: 9}) },
	} {
		stable := &recordedStable{}
		m, s := openTestTerms(t, stable)
		m.cfg.Store.Log = raft.NewInmemStore()
		if err := s.SetUint64([]byte(keyTerm), 9); err != nil {
			t.Fatal(err)
		}
		wantTerms(t, s, 9, 0, "")
		if have := stable.written(); len(have) != 0 {
			t.Errorf("%s: written at once: %q", name, have)
		}
		for range 2 { // the second time there is nothing to write
			if err := s.SetUint64([]byte(keyTerm), 9); err != nil { // raft does so at each start
				t.Fatal(err)
			}
			if err := persist(m); err != nil {
				t.Fatal(err)
			}
			if err := m.Log().DeleteRange(1, 1); err != nil {
				t.Fatal(err)
			}
		}
		if have := stable.written(); len(have) != 1 {
			t.Errorf("%s: written %q, want one write", name, have)
		}
		_, s = openTestTerms(t, stable)
		wantTerms(t, s, 9, 0, "")
	}
}

// Values that a first start and earlier builds have written under raft's own names count.
func TestTerms_RaftsOwnNames_AreRead(t *testing.T) {
	stable := &recordedStable{}
	for _, err := range []error{
		stable.SetUint64([]byte(keyTerm), 3), stable.SetUint64([]byte(keyVoteTerm), 2), stable.Set([]byte(keyCandidate), []byte("c")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, s := openTestTerms(t, stable)
	wantTerms(t, s, 3, 2, "c")
}

// A format of a later version is refused by name, and never guessed.
func TestTerms_UnknownForm_IsRefused(t *testing.T) {
	for _, b := range [][]byte{{}, {1, 2, 3}, append([]byte{2}, make([]byte, 16)...)} {
		stable := &recordedStable{}
		if err := stable.Set(keyTermAndVote, b); err != nil {
			t.Fatal(err)
		}
		if _, err := newTestMonitor(stable).Stable(); err == nil || !strings.Contains(err.Error(), "a form that this version does not know") {
			t.Errorf("% x: %v", b, err)
		}
	}
}
