package state

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// randomCommand draws from a small world, so that most things happen often.
func randomCommand(r *rand.Rand, depth int) Command {
	path := ""
	for range 1 + r.IntN(3) {
		path += "/" + string(rune('a'+r.IntN(3)))
	}
	if r.IntN(6) == 0 {
		path = "/zookeeper/quota/a" + []string{"", "/zookeeper_limits", "/zookeeper_stats"}[r.IntN(3)]
	}
	s := znode.SessionID(r.IntN(5))
	ids := []znode.ID{{Scheme: "digest", ID: fmt.Sprintf("u%d:h", r.IntN(2))}}
	acl := [][]znode.ACL{znode.OpenACL, {{Perms: 31, ID: znode.AuthIDs}}, nil}[min(2, r.IntN(12))]
	if acl == nil || r.IntN(3) > 0 {
		acl = znode.OpenACL
	}
	c := Command{
		Op: Op(1 + r.IntN(13)), Session: s, Flags: Flags(r.IntN(4)), Identities: ids, Path: path, ACL: acl,
		Data: []byte(fmt.Sprintf("count=%d,bytes=%d", r.IntN(9), r.IntN(99))), Version: znode.Version(r.IntN(3) - 1),
		Mode: znode.Mode(r.IntN(7)), Kind: znode.CreateKind(r.IntN(3)), TTL: int64(r.IntN(20)),
		Timeout: time.Duration(r.IntN(9)) * time.Second, Password: session.Password{byte(r.IntN(8) / 7)},
		Term: uint64(1 + r.IntN(3)), Member: Member{ID: ServerID(1 + r.IntN(3)), Peer: fmt.Sprint(r.IntN(2))},
	}
	if r.IntN(2) == 0 {
		c.Op = OpCreate
	}
	if r.IntN(3) == 0 {
		c.Session = 0
	}
	switch {
	case depth > 0 && !(&Command{Op: OpMulti}).has(c.Op):
		c.Op = OpSetData
	case c.Op == OpMulti:
		for range r.IntN(4) {
			c.Ops = append(c.Ops, randomCommand(r, 1))
		}
		if r.IntN(2) == 0 {
			c.Op, c.Branch = OpBranch, &Branch{Then: r.IntN(len(c.Ops) + 1)}
			c.Branch.If = []znode.Condition{{Path: path, Of: znode.OfVersion, Is: znode.Less, Number: 2}}
		}
	}
	return c
}

// randomEntry is one entry of up to three servers; now and then a batch comes twice, or is left
// out so that there is a gap, or a server restarts.
func randomEntry(g *rig, r *rand.Rand, lives []uint64) []byte {
	var batches []Batch
	for range 1 + r.IntN(3) {
		s := r.IntN(len(lives))
		if r.IntN(40) == 0 {
			lives[s]++
		}
		var cmds []Command
		for range r.IntN(5) {
			cmds = append(cmds, randomCommand(r, 0))
		}
		x := g.batch(Origin{ServerID(s + 1), lives[s]}, cmds...)
		switch r.IntN(15) {
		case 0: // lost, and not sent again: a new life
			lives[s]++
		case 1:
			batches = append(batches, x, x)
		default:
			batches = append(batches, x)
		}
	}
	g.time += int64(r.IntN(10))
	return AppendEntry(nil, g.time, batches)
}

// write takes a snapshot and encodes it.
func write(tb testing.TB, m *Machine) []byte {
	tb.Helper()
	s := m.Snapshot()
	defer s.Release()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// TestMachine_Random_SameLogSameState applies one random log to two machines,
// and to a third that is thrown away again and again and restored from a
// snapshot of the first. After every entry all must have the same digest and
// have reported the same to their observers.
func TestMachine_Random_SameLogSameState(t *testing.T) {
	r := seed.Rand(t)
	for range 4 {
		g, lives := newRig(t), []uint64{1, 1, 1}
		ms := []*Machine{New(), New(), New()}
		sessions := 0 // there were at the same time; at the end all may have gone
		for index := uint64(1); index <= 300; index++ {
			if r.IntN(60) == 0 {
				g.term++
			}
			if r.IntN(12) == 0 {
				s := ms[0].Snapshot()
				restored, err := ReadSnapshot(bytes.NewReader(write(t, ms[0])))
				if err != nil {
					t.Fatal(err)
				}
				if restored.Index() != ms[0].Index() || restored.Zxid() != ms[0].Zxid() || s.Index() != ms[0].Index() {
					t.Fatalf("restored index %d zxid %v", restored.Index(), restored.Zxid())
				}
				s.Release()
				ms[2] = restored
			}
			sessions = max(sessions, ms[0].Sessions().Len())
			entry, voters := randomEntry(g, r, lives), map[ServerID]bool(nil)
			if r.IntN(20) == 0 {
				voters = map[ServerID]bool{1: true, 2: r.IntN(2) == 0, 3: r.IntN(2) == 0}
				if r.IntN(2) == 0 {
					delete(voters, 3)
				}
			}
			var want []string
			var digest uint64
			for i, m := range ms {
				rec := &recorder{}
				if voters != nil {
					m.Configure(index, g.term, voters, rec)
				} else if err := m.Apply(index, g.term, slices.Clone(entry), rec); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					want, digest = rec.lines, m.Digest()
				}
				if !slices.Equal(rec.lines, want) || m.Digest() != digest {
					t.Fatalf("entry %d: machine %d told\n%s\nthe first told\n%s", index, i,
						strings.Join(rec.lines, "\n"), strings.Join(want, "\n"))
				}
			}
		}
		if ms[0].Tree().Size().Znodes < 10 || sessions == 0 {
			t.Errorf("a dull run: %+v, never a session", ms[0].Tree().Size())
		}
	}
}

// busy is a machine with something of everything.
func busy(tb testing.TB) *Machine {
	g := newRig(tb)
	r := rand.New(rand.NewPCG(1, 2))
	lives := []uint64{1, 1, 1}
	for range 200 {
		g.index++
		if err := g.m.Apply(g.index, 1, randomEntry(g, r, lives), &recorder{}); err != nil {
			tb.Fatal(err)
		}
	}
	g.m.Configure(g.index+1, 1, map[ServerID]bool{1: true, 2: false}, g.rec)
	return g.m
}

// TestRestore_Damage_IsAnError cuts a snapshot off at every byte and flips a
// bit of every byte: an error, never a panic or another state.
func TestRestore_Damage_IsAnError(t *testing.T) {
	want := busy(t)
	good := write(t, want)
	if m, err := ReadSnapshot(bytes.NewReader(good)); err != nil || !same(m, want) {
		t.Fatal("undamaged: ", err)
	}
	for n := range good {
		if _, err := ReadSnapshot(bytes.NewReader(good[:n])); err == nil {
			t.Fatalf("cut off at %d of %d: no error", n, len(good))
		}
	}
	r := seed.Rand(t)
	for n := range good {
		bad := slices.Clone(good)
		bad[n] ^= 1 << r.IntN(8)
		// Some bits of a zstd stream mean nothing; then the state is the same.
		if m, err := ReadSnapshot(bytes.NewReader(bad)); err == nil && !same(m, want) {
			t.Errorf("byte %d of %d flipped from %02x to %02x: another state", n, len(good), good[n], bad[n])
		}
	}
	if _, err := ReadSnapshot(bytes.NewReader(append(slices.Clone(good), 0))); err == nil {
		t.Error("a byte behind the end: no error")
	}
}

// same compares all of two states.
func same(a, b *Machine) bool {
	return a.Digest() == b.Digest() && a.index == b.index && a.time == b.time && a.zxid == b.zxid
}

// brokenWriter fails after a number of bytes.
type brokenWriter struct{ left int }

func (w *brokenWriter) Write(b []byte) (int, error) {
	if len(b) > w.left {
		return 0, fmt.Errorf("disk full")
	}
	w.left -= len(b)
	return len(b), nil
}

func TestSnapshot_Write_ReportsErrors(t *testing.T) {
	m := busy(t)
	size := len(write(t, m))
	for n := 0; n < size; n += 97 {
		s := m.Snapshot()
		if err := s.Write(&brokenWriter{n}); err == nil || !strings.Contains(err.Error(), "writing snapshot: disk full") {
			t.Errorf("room for %d of %d bytes: %v", n, size, err)
		}
		s.Release()
	}
}

// FuzzRestore feeds the blocks within the zstd stream, and raw bytes.
func FuzzRestore(f *testing.F) {
	good := write(f, New())
	f.Add(good)
	f.Add(write(f, busy(f)))
	f.Add(good[:len(good)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadSnapshot(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := ReadSnapshot(bytes.NewReader(write(t, m)))
		if err != nil || again.Digest() != m.Digest() {
			t.Errorf("a restored machine does not survive another snapshot: %v", err)
		}
	})
}

// A znode that a server could write into a snapshot and not read again cost all data: the log before it was gone.
func TestRegression_Snapshot_WritesNoBlockThatCannotBeRead(t *testing.T) {
	s := busy(t).Snapshot()
	defer s.Release()
	out := bufio.NewWriter(io.Discard)
	if err := s.writeBlocks(out, blockMax); err != nil {
		t.Error(err)
	}
	if err := s.writeBlocks(out, 50); err == nil || !strings.Contains(err.Error(), "at most 50 can be read again") {
		t.Errorf("got %v, want an error with the bound", err)
	}
}

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
