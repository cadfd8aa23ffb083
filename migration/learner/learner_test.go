package learner

import (
	"io"
	"testing"
)

// A snapshot that was written while transactions were committed is handed on when all of them have been applied; what
// follows has digests that fit.
func TestFollow_Snapshot(t *testing.T) {
	h, r := newHistory(), &recorder{}
	h.create(at(1), "/a")
	err := play(t, Config{}, Position{}, r, func(s *scripted) {
		if p := s.discover(); p.zxid != 0 {
			t.Errorf("ACKEPOCH of %v, want 0, which brings a snapshot", p.zxid)
		}
		s.send(snap, at(2), nil)
		// The stream has what SNAP's zxid promises, and more.
		two, three, four := h.create(at(2), "/a/b"), h.create(at(3), "/c"), h.remove(at(4), "/a/b")
		s.write(h.stream())
		s.propose(two)
		s.inform(three)
		s.send(newLeader, at(0), []byte(configText))
		s.expect(ack)
		s.inform(four) // ZooKeeper 3.4 places NEWLEADER before the snapshot has ended
		s.send(ping, at(4), nil)
		if p := s.expect(ping); p.zxid != at(4) || p.data == nil {
			t.Errorf("PING was answered with %v, null: %v; want %v, and no null", p.zxid, p.data == nil, at(4))
		}
		s.send(upToDate, -1, nil)
		if p := s.expect(ack); p.zxid != at(0) {
			t.Errorf("ACK of %v, want %v", p.zxid, at(0))
		}
		s.inform(h.create(at(5), "/d"))
		s.inform(h.create(at(6), "/a/e"))
	})
	wantError(t, err, io.EOF)
	r.want(t, "leader SNAP", "snapshot 0x500000004", "0x500000005", "0x500000006")
	if !r.state.DigestIs(h.state.Digest()) {
		t.Errorf("digest %x, want %x", r.state.Digest(), h.state.Digest())
	}
	if r.leader != (Leader{Server: "a:2888", Epoch: 5, Sync: "SNAP", Config: configText}) {
		t.Errorf("got the leader %+v", r.leader)
	}
}

// After a lost connection the leader sends what is missing.
func TestFollow_Diff(t *testing.T) {
	h, r := newHistory(), &recorder{}
	one, two, three := h.create(at(1), "/a"), h.create(at(2), "/b"), h.create(at(3), "/c")
	err := play(t, Config{}, Position{Zxid: at(1), Epoch: 5}, r, func(s *scripted) {
		if p := s.expect(observerInfo); p.zxid != at(0) {
			t.Errorf("OBSERVERINFO announces %v, want %v", p.zxid, at(0))
		}
		s.send(leaderInfo, at(0), []byte{0, 1, 0, 0})
		if p := s.expect(ackEpoch); p.zxid != at(1) || string(p.data) != "\xff\xff\xff\xff" {
			t.Errorf("ACKEPOCH of %v with %x, want %v and -1", p.zxid, p.data, at(1))
		}
		s.send(diff, at(3), nil)
		s.propose(one) // a repeat
		s.propose(two)
		s.propose(three)
		s.inform(three) // a repeat
		s.send(proposal, at(4), h.create(at(4), "/d"))
		s.finish()
		s.send(proposal, at(4), h.raw[at(4)]) // what is for voters is ignored
		s.send(commit, at(4), nil)
		s.inform(h.raw[at(4)])
	})
	wantError(t, err, io.EOF)
	r.want(t, "leader DIFF", "0x500000002", "0x500000003", "0x500000004")
}

// A follower that serves observers answers with DIFF before the first transaction of a new ensemble: what it has is
// what we have, nothing. The handler gets that as a snapshot.
func TestFollow_NewEnsemble(t *testing.T) {
	h, r := newHistory(), &recorder{}
	err := play(t, Config{}, Position{}, r, func(s *scripted) {
		s.discover()
		s.send(diff, 0, nil)
		s.finish()
		s.inform(h.create(at(1), "/a"))
	})
	wantError(t, err, io.EOF)
	r.want(t, "leader DIFF", "snapshot 0x0", "0x500000001")
}
