package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// relaying returns a mirror that relays, with the session 0x100 of server 1's client.
func relaying(t testing.TB) (*source, *rig) {
	s, g := mirroring(t)
	g.must(1, lost(1))
	g.must(1, Command{Op: OpMirror, Mirror: MirrorOnline, Term: 1})
	number := g.relay(1, relayedSession(0x100))
	g.must(1, follow(1, s.answer(0x100, number, replica.Change{Op: replica.OpCreateSession, Timeout: 4000})))
	return s, g
}

func lost(term uint64) Command { return Command{Op: OpMirror, Mirror: MirrorLost, Term: term} }

func relayedSession(id znode.SessionID) Command {
	c := openSession(id)
	c.Password = session.CompatiblePassword(id)
	return c
}

// relay applies a command that is relayed, and returns its number.
func (g *rig) relay(from ServerID, c Command) uint64 {
	g.t.Helper()
	r := g.must(from, c)
	if r.Relay == 0 {
		g.t.Fatalf("%+v is not relayed: %+v", c, r)
	}
	return r.Relay
}

func of(id znode.SessionID, c Command) Command { c.Session = id; return c }

// The answer to each kind of command has what its client gets: path, Stat, and what each operation of a multi
// has done, as it was right after that operation.
func TestRelay_Answers(t *testing.T) {
	multi := Command{Op: OpMulti, Ops: []Command{create("/m"), create("/m/n"), {Op: OpSetData, Path: "/a"}, {Op: OpCheck, Path: "/a"}, {Op: OpDelete, Path: "/m/n"}}}
	acl := []znode.ACL{{Perms: 31, ID: znode.ID{Scheme: "digest", ID: "a:b"}}}
	for name, tt := range map[string]struct {
		c    Command
		txn  replica.Change
		want string
	}{
		"a create": {
			Command{Op: OpCreate, Path: "/a/s-", Mode: znode.EphemeralSequential, ACL: znode.OpenACL},
			replica.Change{Op: replica.OpCreate2, Path: "/a/s-0000000000", ACL: znode.OpenACL, Ephemeral: true, Creates: 1},
			"create no error /a/s-0000000000 version 0 owner 256",
		},
		"a setData":  {Command{Op: OpSetData, Path: "/a", Version: -1}, replica.Change{Op: replica.OpSetData, Path: "/a", Data: []byte("12"), Version: 7}, "setData no error  version 7 owner 0"},
		"a setACL":   {Command{Op: OpSetACL, Path: "/a", ACL: acl, Version: -1}, replica.Change{Op: replica.OpSetACL, Path: "/a", ACL: acl, Version: 3}, "setACL no error  version 0 owner 0"},
		"a delete":   {Command{Op: OpDelete, Path: "/a", Version: -1}, replica.Change{Op: replica.OpDelete, Path: "/a"}, "delete no error  version 0 owner 0"},
		"a failure":  {create("/a"), replica.Change{Op: replica.OpError, Code: znode.ErrNodeExists}, "create znode already exists  version 0 owner 0"},
		"an expiry":  {create("/b"), replica.Change{Op: replica.OpError, Code: znode.ErrSessionExpired}, "create session expired  version 0 owner 0"},
		"no session": {multi, replica.Change{Op: replica.OpError, Code: znode.ErrSessionMoved}, "multi session moved to another server  version 0 owner 0"},
		"a multi": {multi, replica.Change{Op: replica.OpMulti, Multi: []replica.Change{
			{Op: replica.OpCreate, Path: "/m", ACL: znode.OpenACL, Creates: 2}, {Op: replica.OpCreate, Path: "/m/n", ACL: znode.OpenACL, Creates: 1},
			{Op: replica.OpSetData, Path: "/a", Version: 1}, {Op: replica.OpCheck, Path: "/a", Version: 1}, {Op: replica.OpDelete, Path: "/m/n"},
		}}, "multi no error  version 0 owner 0; create no error /m 0 children; create no error /m/n 0 children; " +
			"setData no error  0 children; check no error  0 children; delete no error  0 children"},
		"a multi that fails": {multi, replica.Change{Op: replica.OpMulti, Multi: []replica.Change{
			{Op: replica.OpError}, {Op: replica.OpError}, {Op: replica.OpError, Code: znode.ErrBadVersion}, {Op: replica.OpError, Code: znode.ErrRuntimeInconsistency},
			{Op: replica.OpError, Code: znode.ErrRuntimeInconsistency},
		}}, "multi no error  version 0 owner 0; create no error  0 children; create no error  0 children; setData version does not match  0 children; " +
			"check not tried: an earlier operation of the multi failed  0 children; delete not tried: an earlier operation of the multi failed  0 children"},
	} {
		s, g := relaying(t)
		number := g.relay(1, of(0x100, tt.c))
		other := s.commit(0x77, replica.Change{Op: replica.OpError, Code: -1}) // of a client of ZooKeeper's
		g.must(1, follow(1, other, s.answer(0x100, number, tt.txn)))
		if len(g.rec.answers) != 1 || g.rec.answers[0].number != number || g.rec.answers[0].Zxid != s.r.Zxid {
			t.Errorf("%s: answers %+v, want one to %d at %v", name, g.rec.answers, number, s.r.Zxid)
			continue
		}
		r := g.rec.answers[0]
		got := fmt.Sprintf("%v %v %s version %d owner %d", r.Op, r.Code, r.Path, r.Stat.Version, r.Stat.EphemeralOwner)
		for _, one := range r.Multi {
			got += fmt.Sprintf("; %v %v %s %d children", one.Op, one.Code, one.Path, one.Stat.NumChildren)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		if now, _ := g.m.Mirror(); now.Relays != 0 {
			t.Errorf("%s: %d outstanding, want 0", name, now.Relays)
		}
	}
}

// A session belongs to the server that opened it, until its client attaches elsewhere, which the source has to allow;
// and its end is reported before the reply.
func TestRelay_Sessions(t *testing.T) {
	s, g := relaying(t)
	if x := g.m.Sessions().Get(0x100); x == nil || x.Owner != 1 || !x.Compatible() {
		t.Fatalf("the session is %+v, want one of server 1 with a computed password", x)
	}
	if got := g.do(2, of(0x100, create("/b")))[0].Code; got != znode.ErrSessionMoved {
		t.Errorf("a command of another server: %v, want %v", got, znode.ErrSessionMoved)
	}
	attach := Command{Op: OpAttach, Session: 0x77, Timeout: 5 * time.Second}
	if got := g.do(2, attach)[0].Code; got != znode.ErrSessionExpired {
		t.Errorf("with a wrong password: %v, want %v", got, znode.ErrSessionExpired)
	}
	attach.Password = session.CompatiblePassword(0x77)
	answer := func(number uint64, code znode.Error) Command {
		return Command{Op: OpMirror, Mirror: MirrorAnswer, Term: 1, Data: AppendAnswer(nil, number, code)}
	}
	g.must(1, answer(g.relay(2, attach), znode.ErrSessionExpired))
	if x := g.m.Sessions().Get(0x77); g.rec.answers[0].Code != znode.ErrSessionExpired || x.Owner != uint64(NoServer) {
		t.Errorf("refused by the source: %+v, session %+v; want it expired, and where it was", g.rec.answers, x)
	}
	number := g.relay(2, attach)
	g.must(1, answer(number, znode.OK))
	if got := strings.Join(g.rec.lines, "\n"); !strings.HasPrefix(got, "attached {ID:0x77 Timeout:5s") || !strings.Contains(got, fmt.Sprintf("\nanswer %d", number)) ||
		g.m.Sessions().Get(0x77).Owner != 2 {
		t.Errorf("allowed by it: %s; want the session at server 2", got)
	}
	unknown := g.relay(2, Command{Op: OpAttach, Session: 0x99, Password: session.CompatiblePassword(0x99)})
	g.must(1, answer(unknown, znode.OK))
	if got := g.rec.answers[0].Code; got != znode.ErrSessionExpired {
		t.Errorf("of a session that is not in the table: %v, want %v", got, znode.ErrSessionExpired)
	}
	sync := g.relay(2, Command{Op: OpSync, Session: 0x77})
	g.must(1, answer(sync, znode.OK))
	if got := g.rec.answers[0]; got.Op != OpSync || got.Code != znode.OK || got.Zxid != g.m.Zxid() {
		t.Errorf("a sync: %+v, want OK at %v", got, g.m.Zxid())
	}
	closing := g.relay(1, Command{Op: OpCloseSession, Session: 0x100})
	g.must(1, follow(1, s.answer(0x100, closing, replica.Change{Op: replica.OpCloseSession})))
	if got := strings.Join(g.rec.lines, "\n"); !strings.HasPrefix(got, "closed 0x100 false\nanswer") {
		t.Errorf("closed: %s, want its end, then the answer", got)
	}
	s.cxid = 0
	g.must(1, follow(1, s.commit(0x77, replica.Change{Op: replica.OpCloseSession})))
	if got := strings.Join(g.rec.lines, "\n"); !strings.HasPrefix(got, "closed 0x77 true") {
		t.Errorf("expired: %s, want that", got)
	}
}

// After a MirrorLost no one may send what was relayed before it, and the sessions of that must attach again: what their
// clients have sent meanwhile could otherwise happen without it.
func TestRelay_Lost(t *testing.T) {
	s, g := relaying(t)
	sendable := func(term, after uint64) (all []uint64) {
		g.m.Relays(term, after, func(n uint64, c *Command) bool { all = append(all, n); return true })
		return all
	}
	sent, unsent := g.relay(1, of(0x100, create("/b"))), g.relay(1, of(0x100, create("/c")))
	if got := sendable(1, 0); !slices.Equal(got, []uint64{sent, unsent}) {
		t.Errorf("in their term %v may be sent, want %d and %d", got, sent, unsent)
	}
	if got := sendable(1, sent); !slices.Equal(got, []uint64{unsent}) {
		t.Errorf("after the first %v may be sent, want %d", got, unsent)
	}
	g.term = 2
	later := g.relay(1, of(0x100, create("/d")))
	if got := sendable(1, 0); slices.Contains(got, later) {
		t.Errorf("in their term %v may be sent, want none of another's", got)
	}
	if got := sendable(2, 0); got != nil {
		t.Errorf("before the next leader's MirrorLost %v may be sent, want none", got)
	}
	got := g.do(1, lost(1))[0].Code
	if now, _ := g.m.Mirror(); got != znode.ErrSessionMoved || now.Relays != 3 {
		t.Errorf("one of the former leader: %v, %d outstanding, want %v and 3", got, now.Relays, znode.ErrSessionMoved)
	}
	g.must(2, lost(2))
	var numbers []uint64
	for _, a := range g.rec.answers {
		if numbers = append(numbers, a.number); a.Code != znode.ErrConnectionLoss {
			t.Errorf("%d: %v, want %v", a.number, a.Code, znode.ErrConnectionLoss)
		}
	}
	if now, _ := g.m.Mirror(); !slices.Equal(numbers, []uint64{sent, unsent, later}) || now.Relays != 0 || now.Online {
		t.Errorf("dropped %v, %d outstanding, online %v; want all three, in order, 0, false", numbers, now.Relays, now.Online)
	}
	if got := g.do(1, of(0x100, create("/e")))[0].Code; got != znode.ErrSessionMoved {
		t.Errorf("a later command of the session: %v, want %v", got, znode.ErrSessionMoved)
	}
	// The one that was sent has happened: no one waits for that any longer.
	g.must(2, follow(2, s.answer(0x100, sent, replica.Change{Op: replica.OpCreate, Path: "/b", ACL: znode.OpenACL, Creates: -1})))
	if len(g.rec.answers) != 0 {
		t.Errorf("answers %+v to what was dropped, want none", g.rec.answers)
	}
	number := g.relay(1, Command{Op: OpAttach, Session: 0x100, Password: session.CompatiblePassword(0x100), Timeout: time.Second})
	g.must(2, Command{Op: OpMirror, Mirror: MirrorAnswer, Term: 2, Data: AppendAnswer(nil, number, znode.OK)})
	last := g.relay(1, of(0x100, create("/e")))
	if got := sendable(2, 0); !slices.Equal(got, []uint64{last}) {
		t.Errorf("%v may be sent, want %d", got, last)
	}
	g.must(3, Command{Op: OpMirror, Mirror: MirrorStop})
	if len(g.rec.answers) != 1 || g.rec.answers[0].Code != znode.ErrConnectionLoss {
		t.Errorf("at the end of the mirror: %+v, want it dropped", g.rec.answers)
	}
}

// A fault is part of the state, also if its leader is deposed. What waits for the source is dropped, and so is what comes later,
// until the mirror is begun again.
func TestRelay_Fault(t *testing.T) {
	s, g := relaying(t)
	fault := func(begun uint64, reason string) Command {
		return Command{Op: OpMirror, Mirror: MirrorFault, Data: AppendFault(nil, begun, reason)}
	}
	waits := g.relay(1, of(0x100, create("/b")))
	g.term = 2 // the leader that has seen it is deposed
	for name, tt := range map[string]struct {
		c    Command
		want znode.Error
	}{
		"of another mirror": {fault(2, "why"), znode.ErrSessionMoved},
		"no reason":         {fault(1, ""), znode.ErrMarshalling},
		"no data":           {Command{Op: OpMirror, Mirror: MirrorFault}, znode.ErrMarshalling},
		"not UTF-8":         {Command{Op: OpMirror, Mirror: MirrorFault, Data: []byte{1, 0xff}}, znode.ErrMarshalling},
		"a long reason":     {Command{Op: OpMirror, Mirror: MirrorFault, Data: append([]byte{1}, make([]byte, MaxMirrorFault+1)...)}, znode.ErrMarshalling},
	} {
		got := g.do(3, tt.c)[0].Code
		if now, _ := g.m.Mirror(); got != tt.want || now.Fault != "" || !now.Online || now.Relays != 1 {
			t.Errorf("%s: %v, %+v; want %v, and nothing changed", name, got, now, tt.want)
		}
	}
	g.must(3, fault(1, strings.Repeat("é", MaxMirrorFault)))
	if len(g.rec.answers) != 1 || g.rec.answers[0].number != waits || g.rec.answers[0].Code != znode.ErrConnectionLoss {
		t.Errorf("answers %+v, want that %d is lost", g.rec.answers, waits)
	}
	g.must(3, fault(1, "another"))
	g.must(3, inTerm(2, Command{Op: OpMirror, Mirror: MirrorOnline}))
	g.m = reread(t, g.m)
	if now, _ := g.m.Mirror(); now.Fault != strings.Repeat("é", MaxMirrorFault/2) || now.Online || !now.Loaded || now.Relays != 0 {
		t.Errorf("%+v, want the first reason, cut off", now)
	}
	attach := Command{Op: OpAttach, Session: 0x100, Password: session.CompatiblePassword(0x100), Timeout: time.Second}
	for _, c := range []Command{attach, relayedSession(0x101)} {
		if got := g.do(1, c)[0]; got.Code != znode.ErrConnectionLoss || got.Relay != 0 {
			t.Errorf("%v: %v, number %d; want it dropped", c.Op, got.Code, got.Relay)
		}
	}
	g.must(1, Command{Op: OpMirror, Mirror: MirrorAgain})
	for _, c := range append(s.upload(2, 11, 100), lost(2)) {
		g.must(1, c)
	}
	if now, _ := g.m.Mirror(); now.Fault != "" || !now.Loaded {
		t.Errorf("begun again: %+v, want no fault", now)
	}
	g.relay(1, attach)
}

// What ZooKeeper does not know is refused, and so is a session id with which it would destroy itself.
func TestRelay_Refusals(t *testing.T) {
	_, g := relaying(t)
	keyed := of(0x100, create("/b"))
	keyed.Flags, keyed.Key = FlagKeyed, "key"
	bad := of(0x100, create("/b"))
	for name, tt := range map[string]struct {
		c    Command
		want znode.Error
	}{
		"a key":              {keyed, znode.ErrNotReadOnly},
		"no session":         {create("/b"), znode.ErrNotReadOnly},
		"an mzxid":           {Command{Op: OpDelete, Session: 0x100, Path: "/a", Mzxid: 5}, znode.ErrNotReadOnly},
		"an mzxid in one":    {of(0x100, Command{Op: OpMulti, Ops: []Command{{Op: OpCheck, Path: "/a", Mzxid: 5}}}), znode.ErrNotReadOnly},
		"an absence":         {of(0x100, Command{Op: OpMulti, Ops: []Command{{Op: OpCheckAbsent, Path: "/b"}}}), znode.ErrNotReadOnly},
		"a branch":           {of(0x100, Command{Op: OpBranch, Branch: &Branch{}}), znode.ErrNotReadOnly},
		"a subtree":          {Command{Op: OpDeleteAll, Session: 0x100, Path: "/a"}, znode.ErrNotReadOnly},
		"an expiry":          {Command{Op: OpExpireSession, Session: 0x100, Term: 1}, znode.ErrNotReadOnly},
		"no such session":    {of(0x101, create("/b")), znode.ErrSessionExpired},
		"an id of 0xff":      {relayedSession(-1 << 56), znode.ErrBadArguments},
		"an id that is none": {relayedSession(-1 << 63), znode.ErrBadArguments},
		"an id that exists":  {relayedSession(0x77), znode.ErrNodeExists},
		"a long timeout":     {Command{Op: OpCreateSession, Session: 9, Timeout: 1 << 31 * time.Millisecond}, znode.ErrBadArguments},
		"a bad one attached": {Command{Op: OpAttach, Session: -1 << 56, Password: session.CompatiblePassword(-1 << 56)}, znode.ErrSessionExpired},
	} {
		if got := g.do(1, tt.c)[0]; got.Code != tt.want || got.Relay != 0 {
			t.Errorf("%s: %v, number %d, want %v and none", name, got.Code, got.Relay, tt.want)
		}
	}
	bad.Data = make([]byte, MaxRelayBytes/4)
	before := g.m.Memory()
	for i := range 4 {
		if got := g.do(1, bad)[0]; (got.Code == znode.ErrConnectionLoss) != (i == 3) {
			t.Errorf("%d bytes outstanding: %v, want %v only for the last", i*len(bad.Data), got.Code, znode.ErrConnectionLoss)
		}
	}
	if got := g.m.Memory() - before; got < 3*MaxRelayBytes/4 || got > MaxRelayBytes {
		t.Errorf("they take %d bytes of memory, want those of three: %d each", got, len(bad.Data))
	}
	g.must(1, lost(1))
	if got := g.m.Memory(); got != before {
		t.Errorf("dropped, they take memory: %d bytes, want %d as before", got, before)
	}
	again := g.relay(1, Command{Op: OpAttach, Session: 0x100, Password: session.CompatiblePassword(0x100)})
	g.must(1, Command{Op: OpMirror, Mirror: MirrorAnswer, Term: 1, Data: AppendAnswer(nil, again, znode.OK)})
	for i := range MaxRelays + 1 {
		if got := g.do(1, Command{Op: OpSync, Session: 0x100})[0]; (got.Code == znode.ErrConnectionLoss) != (i == MaxRelays) {
			t.Fatalf("%d outstanding: %v, want %v only for the last", i, got.Code, znode.ErrConnectionLoss)
		}
	}
	g.must(1, Command{Op: OpMirror, Mirror: MirrorAgain})
	if got := g.do(1, of(0x100, create("/b")))[0].Code; got != znode.ErrNotReadOnly {
		t.Errorf("while no state is loaded: %v, want %v", got, znode.ErrNotReadOnly)
	}
}

// Two machines that get the same log have the same state and report the same, also when one was written and read in
// between; every relay gets one outcome, those of a session in their order, and none that was dropped is answered.
func TestRelay_Random(t *testing.T) {
	r := seed.Rand(t)
	for round := range 30 {
		s, one := relaying(t)
		_, two := relaying(t)
		w := &relayWorld{t: t, s: s, r: r, rigs: []*rig{one, two}, session: map[uint64]znode.SessionID{}, done: map[uint64]bool{}}
		for range 300 {
			w.step()
			if r.IntN(40) == 0 {
				m, err := ReadSnapshot(bytes.NewReader(write(t, two.m)))
				if err != nil {
					t.Fatalf("round %d: reading the snapshot: %v", round, err)
				}
				two.m = m
			}
			if !slices.Equal(one.rec.lines, two.rec.lines) {
				t.Fatalf("round %d: reported\n%q\nand\n%q, want the same", round, one.rec.lines, two.rec.lines)
			}
		}
		if a, b := one.m.Digest(), two.m.Digest(); a != b {
			t.Fatalf("round %d: digests %x and %x, want the same", round, a, b)
		}
		w.answer(len(w.sent))
		w.do(lost(one.term))
		s.same(one.m)
		if len(w.done) != len(w.session) || len(w.done) == 0 {
			t.Errorf("round %d: %d of %d relays have an outcome, want all", round, len(w.done), len(w.session))
		}
	}
}

// relayWorld plays clients, a leader and the source.
type relayWorld struct {
	t       *testing.T
	s       *source
	r       *rand.Rand
	rigs    []*rig
	after   uint64   // the last relay that was sent
	sent    []uint64 // and not answered
	kinds   []Op
	newest  map[znode.SessionID]uint64
	session map[uint64]znode.SessionID // of each relay
	done    map[uint64]bool
}

func (w *relayWorld) do(c Command) {
	w.t.Helper()
	for _, g := range w.rigs {
		g.do(1, c)
	}
	g := w.rigs[0]
	if n := g.rec.results[0].Relay; n != 0 {
		w.session[n] = c.Session
	}
	if w.newest == nil {
		w.newest = map[znode.SessionID]uint64{}
	}
	for _, a := range g.rec.answers {
		if w.done[a.number] || a.number < w.newest[w.session[a.number]] {
			w.t.Fatalf("the answer to %d comes twice, or after one to %d of session %v", a.number, w.newest[w.session[a.number]], w.session[a.number])
		}
		w.done[a.number], w.newest[w.session[a.number]] = true, a.number
	}
}

func (w *relayWorld) step() {
	id := znode.SessionID(0x200 + w.r.IntN(4))
	switch w.r.IntN(12) {
	case 0:
		w.do(relayedSession(id))
	case 1:
		w.do(Command{Op: OpAttach, Session: id, Password: session.CompatiblePassword(id), Timeout: time.Second})
	case 2:
		w.do(Command{Op: OpSync, Session: id})
	case 3:
		w.s.random(w.r)
		w.do(follow(w.rigs[0].term, w.s.sent[len(w.s.sent)-1]))
	case 4:
		if w.r.IntN(4) == 0 { // another leader
			w.rigs[0].term++
			w.rigs[1].term++
		}
		w.sent, w.kinds = nil, nil
		w.do(lost(w.rigs[0].term))
	case 5, 6:
		w.send()
	case 7, 8:
		w.answer(w.r.IntN(4))
	default:
		w.do(of(id, create("/relayed")))
	}
}

// send takes what the leader may send now.
func (w *relayWorld) send() {
	g := w.rigs[0]
	g.m.Relays(g.term, w.after, func(n uint64, c *Command) bool {
		if w.after = n; w.done[n] {
			w.t.Fatalf("%d may be sent, and has an outcome", n)
		}
		w.sent, w.kinds = append(w.sent, n), append(w.kinds, c.Op)
		return true
	})
}

// answer answers the oldest that were sent.
func (w *relayWorld) answer(n int) {
	term := w.rigs[0].term
	for ; n > 0 && len(w.sent) > 0; n-- {
		number, op := w.sent[0], w.kinds[0]
		id := w.session[number]
		w.sent, w.kinds = w.sent[1:], w.kinds[1:]
		exists := w.s.r.Sessions.Get(id) != nil
		switch {
		case op == OpSync || op == OpAttach:
			code := znode.OK
			if !exists {
				code = znode.ErrSessionExpired
			}
			w.do(Command{Op: OpMirror, Mirror: MirrorAnswer, Term: term, Data: AppendAnswer(nil, number, code)})
		case op == OpCreateSession:
			w.do(follow(term, w.s.answer(id, number, replica.Change{Op: replica.OpCreateSession, Timeout: 4000})))
		default:
			w.do(follow(term, w.s.answer(id, number, replica.Change{Op: replica.OpError, Code: znode.ErrNoNode})))
		}
	}
}
