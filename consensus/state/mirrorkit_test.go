package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// source plays a ZooKeeper ensemble: it commits transactions, and has them as its leader sends them.
type source struct {
	t    testing.TB
	r    *replica.Replica
	x    znode.Txn
	time int64
	cxid int32 // of the next transaction
	sent [][]byte
}

func newSource(t testing.TB) *source {
	s := &source{t: t, r: replica.New(znode.NewTree(), session.NewTable(), 5<<32), time: 1_000_000, cxid: 1}
	s.commit(1, replica.Change{Op: replica.OpCreate, Path: "/a", Data: []byte("x"), ACL: znode.OpenACL, Creates: 1})
	s.commit(0x77, replica.Change{Op: replica.OpCreateSession, Timeout: 6000})
	return s
}

// commit applies the next transaction, and returns it with its digest.
func (s *source) commit(session znode.SessionID, c replica.Change) []byte {
	s.t.Helper()
	s.time++
	b := appendHeader(session, s.cxid, s.r.Zxid+1, s.time, c.Op)
	b = appendChange(b, &c)
	t, err := replica.ParseTxn(b)
	if err == nil {
		err = s.r.Apply(&s.x, t, false)
	}
	if err != nil {
		s.t.Fatalf("committing %+v: %v", c, err)
	}
	if c.Op != replica.OpError {
		b = appendDigest(b, s.r.Digest())
	}
	s.sent = append(s.sent, b)
	return b
}

// answer commits the transaction that answers a relay.
func (s *source) answer(session znode.SessionID, number uint64, c replica.Change) []byte {
	s.t.Helper()
	s.cxid = RelayCxid(number)
	defer func() { s.cxid = 1 }()
	return s.commit(session, c)
}

// elect starts a new epoch, whose first transaction it commits.
func (s *source) elect(c replica.Change) []byte {
	s.r.Zxid = (s.r.Zxid>>32 + 1) << 32
	return s.commit(1, c)
}

// follow is the MirrorFollow with transactions.
func follow(term uint64, txns ...[]byte) Command {
	c := Command{Op: OpMirror, Mirror: MirrorFollow, Term: term}
	for _, b := range txns {
		c.Data = AppendTxn(c.Data, b)
	}
	return c
}

func start(text string) Command {
	return Command{Op: OpMirror, Mirror: MirrorStart, Data: []byte(text)}
}

// upload returns the commands that load the source's state, in parts of a size.
func (s *source) upload(term, id uint64, size int) (all []Command) {
	s.t.Helper()
	var b bytes.Buffer
	if err := WriteMirrored(&b, s.r); err != nil {
		s.t.Fatal(err)
	}
	x := RestoreCommand{Upload: id, Sum: xxhash.Sum64(b.Bytes())}
	for part := range slices.Chunk(b.Bytes(), size) {
		all = append(all, Command{Op: OpMirror, Mirror: MirrorPart, Term: term, Data: part,
			Restore: RestoreCommand{Upload: id, Part: x.Part}})
		x.Part++
	}
	return append(all, Command{Op: OpMirror, Mirror: MirrorLoad, Term: term, Restore: x})
}

// mirroring returns a source, and a rig that has its state.
func mirroring(t testing.TB) (*source, *rig) {
	s, g := newSource(t), newRig(t)
	g.must(1, start("source"))
	for _, c := range s.upload(1, 9, 100) {
		g.must(1, c)
	}
	return s, g
}

// same compares the mirror with its source: znodes but those of the system, and sessions.
func (s *source) same(m *Machine) {
	s.t.Helper()
	got := replica.New(m.Tree(), m.Sessions(), m.Zxid())
	if got.Digest() != s.r.Digest() || m.Zxid() != s.r.Zxid || m.Sessions().Len() != s.r.Sessions.Len() {
		s.t.Errorf("digest %x, zxid %v, %d sessions; want %x, %v, %d", got.Digest(), m.Zxid(), m.Sessions().Len(),
			s.r.Digest(), s.r.Zxid, s.r.Sessions.Len())
	}
	_ = s.r.Tree.Snapshot().Walk(func(want *znode.Record) error {
		acl, _, code := m.Tree().ACLOf(want.Path, super)
		if code != znode.OK || !slices.Equal(acl, want.ACL) {
			s.t.Errorf("%q has %v, %v, want %v", want.Path, acl, code, want.ACL)
		}
		return nil
	})
}

func appendHeader(session znode.SessionID, cxid int32, zxid znode.Zxid, time int64, op replica.Op) []byte {
	b := jute.AppendInt32(jute.AppendInt64(nil, int64(session)), cxid)
	return jute.AppendInt32(jute.AppendInt64(jute.AppendInt64(b, int64(zxid)), time), int32(op))
}

func appendDigest(b []byte, digest uint64) []byte {
	return jute.AppendInt64(jute.AppendInt32(b, 2), int64(digest))
}

func appendChange(b []byte, c *replica.Change) []byte {
	acl := func(b []byte) []byte {
		b = jute.AppendVectorLen(b, len(c.ACL))
		for _, a := range c.ACL {
			b = jute.AppendInt32(b, int32(a.Perms))
			b = jute.AppendUstring(jute.AppendUstring(b, a.ID.Scheme), a.ID.ID)
		}
		return b
	}
	switch c.Op {
	case replica.OpCreate, replica.OpCreate2:
		b = acl(jute.AppendBuffer(jute.AppendUstring(b, c.Path), c.Data))
		return jute.AppendInt32(jute.AppendBool(b, c.Ephemeral), c.Creates)
	case replica.OpCreateContainer, replica.OpCreateTTL:
		b = jute.AppendInt32(acl(jute.AppendBuffer(jute.AppendUstring(b, c.Path), c.Data)), c.Creates)
		if c.Op == replica.OpCreateTTL {
			b = jute.AppendInt64(b, c.TTL)
		}
		return b
	case replica.OpCheck:
		return jute.AppendInt32(jute.AppendUstring(b, c.Path), int32(c.Version))
	case replica.OpDelete:
		return jute.AppendUstring(b, c.Path)
	case replica.OpSetData, replica.OpReconfig:
		return jute.AppendInt32(jute.AppendBuffer(jute.AppendUstring(b, c.Path), c.Data), int32(c.Version))
	case replica.OpSetACL:
		return jute.AppendInt32(acl(jute.AppendUstring(b, c.Path)), int32(c.Version))
	case replica.OpError:
		return jute.AppendInt32(b, int32(c.Code))
	case replica.OpCreateSession:
		return jute.AppendInt32(b, c.Timeout)
	case replica.OpCloseSession:
		return jute.AppendUstrings(b, c.Closed)
	case replica.OpMulti:
		b = jute.AppendVectorLen(b, len(c.Multi))
		for i := range c.Multi {
			b = jute.AppendBuffer(jute.AppendInt32(b, int32(c.Multi[i].Op)), appendChange(nil, &c.Multi[i]))
		}
		return b
	}
	panic(fmt.Sprintf("no encoding of %v", c.Op))
}

// random commits one transaction that fits, drawn from a small world.
func (s *source) random(r *rand.Rand) {
	s.t.Helper()
	session := znode.SessionID(0x100 + r.IntN(3))
	if s.r.Sessions.Get(session) == nil {
		s.commit(session, replica.Change{Op: replica.OpCreateSession, Timeout: int32(r.IntN(9000))})
		return
	}
	switch r.IntN(12) {
	case 0:
		s.commit(session, replica.Change{Op: replica.OpError, Code: znode.ErrNoNode})
	case 1:
		closed := s.r.Tree.Ephemerals(session, "")
		slices.Sort(closed)
		s.commit(session, replica.Change{Op: replica.OpCloseSession, Closed: closed})
	case 2:
		one, two := s.edit(r, "/m"), s.edit(r, "/n")
		s.commit(session, replica.Change{Op: replica.OpMulti, Multi: []replica.Change{one, two}})
	case 3:
		s.commit(session, replica.Change{Op: replica.OpMulti, Multi: []replica.Change{{Op: replica.OpError, Code: -1}}})
	case 4:
		s.elect(s.edit(r, "/e"))
	default:
		s.commit(session, s.edit(r, fmt.Sprintf("/%c", 'a'+r.IntN(3))))
	}
}

// edit is a change of the znode at path, or of one below it.
func (s *source) edit(r *rand.Rand, path string) replica.Change {
	acl := [][]znode.ACL{znode.OpenACL, {{Perms: 31, ID: znode.ID{Scheme: "x", ID: "é"}}}}[r.IntN(2)]
	c := replica.Change{Op: replica.OpCreate, Path: path, Data: make([]byte, r.IntN(50)), ACL: acl, Creates: -1}
	have, code := s.r.Tree.Exists(path, super)
	if code == znode.OK && r.IntN(2) == 0 && have.EphemeralOwner == 0 {
		c.Path += fmt.Sprintf("/ü%d", r.IntN(3))
		have, code = s.r.Tree.Exists(c.Path, super)
	}
	switch kind := r.IntN(4); {
	case code != znode.OK && kind == 0:
		c.Op = replica.OpCreateContainer
		if parent, _ := s.r.Tree.Exists(znode.Parent(c.Path), super); true {
			c.Creates = int32(parent.Cversion+znode.Version(parent.NumChildren))/2 + 1
		}
	case code != znode.OK:
		c.Ephemeral = kind == 1
	case kind == 0:
		c.Op, c.Version = replica.OpSetACL, have.Aversion+1
	case kind == 1 && have.NumChildren == 0:
		c.Op = replica.OpDelete
	default:
		c.Op, c.Version = replica.OpSetData, have.Version+1
	}
	return c
}
