package state

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/session"
)

// TestSnapshot_Digest_OneDifference: two states that differ in one field have two
// digests.
func TestSnapshot_Digest_OneDifference(t *testing.T) {
	digest := func(edit func(*Snapshot)) uint64 {
		s := New().Snapshot()
		defer s.Release()
		s.zxid = 9
		s.voters = map[ServerID]bool{1: true, 2: false}
		s.members = map[ServerID]Member{1: {ID: 1, Peer: "p", Client: "c", HTTP: "h", Addr: "a"}}
		s.origins = map[ServerID]progress{1: {incarnation: 3, last: 4}}
		s.sessions = []session.Session{{ID: 5, Timeout: time.Second, Owner: 1}}
		s.keys = []*answer{{key: "k", print: 6, time: 7}}
		s.upload = &upload{id: 8, from: 1, time: 9, parts: [][]byte{{1}, {2}}}
		edit(s)
		return s.Digest()
	}
	member := func(edit func(*Member)) func(*Snapshot) {
		return func(s *Snapshot) {
			m := s.members[1]
			edit(&m)
			s.members[1] = m
		}
	}
	digests := map[uint64]string{digest(func(*Snapshot) {}): "nothing"}
	if len(digests) != 1 || digests[digest(func(*Snapshot) {})] == "" {
		t.Error("two equal states have two digests")
	}
	for name, edit := range map[string]func(*Snapshot){
		"zxid":            func(s *Snapshot) { s.zxid++ },
		"voter":           func(s *Snapshot) { s.voters[2] = true },
		"voter's id":      func(s *Snapshot) { s.voters = map[ServerID]bool{1: true, 3: false} },
		"member's id":     member(func(m *Member) { m.ID = 2 }),
		"peer":            member(func(m *Member) { m.Peer = "q" }),
		"client":          member(func(m *Member) { m.Client = "q" }),
		"HTTP":            member(func(m *Member) { m.HTTP = "q" }),
		"address":         member(func(m *Member) { m.Addr = "q" }),
		"vote":            member(func(m *Member) { m.Vote = true }),
		"member's voter":  member(func(m *Member) { m.Voter = true }),
		"incarnation":     func(s *Snapshot) { s.origins[1] = progress{incarnation: 4, last: 4} },
		"last":            func(s *Snapshot) { s.origins[1] = progress{incarnation: 3, last: 5} },
		"origin's id":     func(s *Snapshot) { s.origins = map[ServerID]progress{2: {incarnation: 3, last: 4}} },
		"session":         func(s *Snapshot) { s.sessions[0].ID++ },
		"timeout":         func(s *Snapshot) { s.sessions[0].Timeout *= 2 },
		"password":        func(s *Snapshot) { s.sessions[0].Password[3] = 1 },
		"owner":           func(s *Snapshot) { s.sessions[0].Owner++ },
		"key":             func(s *Snapshot) { s.keys[0].key = "l" },
		"fingerprint":     func(s *Snapshot) { s.keys[0].print++ },
		"key's time":      func(s *Snapshot) { s.keys[0].time++ },
		"key's result":    func(s *Snapshot) { s.keys[0].result.Zxid++ },
		"no upload":       func(s *Snapshot) { s.upload = nil },
		"upload":          func(s *Snapshot) { s.upload.id++ },
		"upload's server": func(s *Snapshot) { s.upload.from++ },
		"upload's time":   func(s *Snapshot) { s.upload.time++ },
		"part":            func(s *Snapshot) { s.upload.parts[1] = []byte{3} },
		"order of parts":  func(s *Snapshot) { s.upload.parts = [][]byte{{2}, {1}} },
		"one part more":   func(s *Snapshot) { s.upload.parts = [][]byte{{1}, {2}, {}} },
	} {
		d := digest(edit)
		if other, taken := digests[d]; taken {
			t.Errorf("another %s and another %s give one digest", name, other)
		}
		digests[d] = name
	}
}
