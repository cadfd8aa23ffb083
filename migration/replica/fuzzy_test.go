package replica_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// A snapshot that is written while transactions are applied becomes the same state by those transactions, whatever it
// holds of them already; and from the first one after its end every digest fits.
func TestReplica_Fuzzy(t *testing.T) {
	rnd := seed.Rand(t)
	for round := range 300 {
		o := newOrigin(t, rnd)
		o.work(40)
		from := o.Zxid
		b := o.snapshot()
		until := o.Zxid
		o.work(10)
		r, err := replica.Read(jute.NewStream(bytes.NewReader(b), replica.MaxField), from)
		if err != nil {
			t.Fatalf("round %d: Read = %v", round, err)
		}
		x := new(znode.Txn)
		for i := range o.log {
			txn := &o.log[i]
			if txn.Zxid <= from {
				continue
			}
			if err := r.Apply(x, txn, txn.Zxid <= until); err != nil {
				t.Fatalf("round %d, snapshot from %v to %v: Apply = %v", round, from, until, err)
			}
			if txn.Zxid >= until && !r.Fits(txn) {
				t.Fatalf("round %d, snapshot from %v to %v: the digest after %v differs", round, from, until, txn.Zxid)
			}
		}
		if left := r.Unresolved(); len(left) > 0 {
			t.Fatalf("round %d: the ACLs of %q are unknown", round, left)
		}
		if got, want := stream(t, r), stream(t, o.Replica); !bytes.Equal(got, want) {
			t.Fatalf("round %d, snapshot from %v to %v: another state\n%q\n%q", round, from, until, got, want)
		}
	}
}

func stream(t *testing.T, r *replica.Replica) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// origin is a server with a log. It makes random transactions, as its leader would.
type origin struct {
	*replica.Replica
	t   *testing.T
	rnd *rand.Rand
	log []replica.Txn
	x   znode.Txn
}

func newOrigin(t *testing.T, rnd *rand.Rand) *origin {
	return &origin{Replica: replica.New(znode.NewTree(), session.NewTable(), 0), t: t, rnd: rnd}
}

func (o *origin) work(n int) {
	for range n {
		txn := replica.Txn{Zxid: o.Zxid + 1, Time: int64(o.Zxid) * 10, Session: o.session()}
		switch o.rnd.IntN(12) {
		case 0:
			txn.Session = znode.SessionID(o.Zxid + 100)
			txn.Change = replica.Change{Op: replica.OpCreateSession, Timeout: 1000}
		case 1:
			txn.Change = replica.Change{Op: replica.OpCloseSession, Closed: o.Tree.Ephemerals(txn.Session, "")}
		case 2:
			txn.Change = replica.Change{Op: replica.OpError, Code: znode.ErrNoNode}
		case 3: // operations of a multi see those before them: here they are in parts of their own
			change := replica.Change{Op: replica.OpMulti}
			for _, part := range []string{"/m", "/n"} {
				change.Multi = append(change.Multi, o.change(part, txn.Session))
			}
			txn.Change = change
		default:
			txn.Change = o.change("", txn.Session)
		}
		if err := o.Apply(&o.x, &txn, false); err != nil {
			o.t.Fatalf("the origin's own transaction: %v", err)
		}
		txn.Digest, txn.HasDigest = o.Digest(), true
		o.log = append(o.log, txn)
	}
}

// session is one that is there, or 0.
func (o *origin) session() znode.SessionID {
	var ids []znode.SessionID
	o.Sessions.Each(func(s *session.Session) { ids = append(ids, s.ID) })
	if len(ids) == 0 {
		return 0
	}
	slices.Sort(ids)
	return ids[o.rnd.IntN(len(ids))]
}

// change is a random one that succeeds, of a znode at or below a path.
func (o *origin) change(below string, owner znode.SessionID) replica.Change {
	super := []znode.ID{znode.SuperIDs}
	path, parent := below, znode.Parent(below)
	for range 1 + o.rnd.IntN(3) {
		if path != "" {
			if stat, code := o.Tree.Exists(path, super); code != znode.OK || stat.EphemeralOwner != 0 {
				break
			}
			parent = path
		} else {
			parent = "/"
		}
		path = znode.Join(parent, fmt.Sprint(o.rnd.IntN(3)))
		if below == "" && parent == "/" {
			path = "/" + string("ab"[o.rnd.IntN(2)])
		}
	}
	acl := []znode.ACL{{Perms: znode.Perms(1 + o.rnd.IntN(3)), ID: znode.ID{Scheme: "ip", ID: fmt.Sprintf("10.0.0.%d", o.rnd.IntN(9))}}}
	if o.rnd.IntN(2) == 0 {
		acl = znode.OpenACL
	}
	data := fmt.Append(nil, o.rnd.IntN(100))
	stat, code := o.Tree.Exists(path, super)
	if code != znode.OK {
		c := replica.Change{Op: replica.OpCreate, Path: path, Data: data, ACL: acl, Creates: o.record(parent).creates() + 1}
		switch o.rnd.IntN(6) {
		case 0:
			c.Op = replica.OpCreateContainer
		case 1:
			c.Op, c.TTL = replica.OpCreateTTL, 5
		case 2:
			c.Op = replica.OpCreate2
		case 3, 4:
			c.Ephemeral = owner != 0
		}
		return c
	}
	switch n := o.rnd.IntN(4); {
	case n < 2 && stat.NumChildren == 0:
		return replica.Change{Op: replica.OpDelete, Path: path}
	case n == 2:
		return replica.Change{Op: replica.OpSetACL, Path: path, ACL: acl, Version: stat.Aversion + 1}
	}
	return replica.Change{Op: replica.OpSetData, Path: path, Data: data, Version: stat.Version + 1}
}

// record is a znode as servers store it.
type record struct{ *znode.Record }

func (r record) creates() int32 { return int32(r.Stat.Cversion) }

func (o *origin) record(path string) (found record) {
	snap := o.Tree.Snapshot()
	defer snap.Release()
	if err := snap.Walk(func(r *znode.Record) error {
		if r.Path == path {
			one := *r
			found = record{&one}
		}
		return nil
	}); err != nil {
		o.t.Fatal(err)
	}
	return found
}

// snapshot writes the state while transactions are applied, as DataTree.serialize does: the sessions and the table of
// ACLs, and then each znode with its list of children, which is visited one by one.
func (o *origin) snapshot() []byte {
	b := jute.AppendInt32(nil, int32(o.Sessions.Len()))
	for _, s := range o.Sessions.Clone() {
		b = jute.AppendInt32(jute.AppendInt64(b, int64(s.ID)), int32(s.Timeout.Milliseconds()))
	}
	numbers := map[string]int64{aclText(znode.OpenACL): -1}
	table, n := []byte(nil), int32(0)
	snap := o.Tree.Snapshot()
	if err := snap.Walk(func(r *znode.Record) error {
		if numbers[aclText(r.ACL)] == 0 {
			n++
			numbers[aclText(r.ACL)] = int64(n)
			table = jute.AppendInt32(jute.AppendInt64(table, int64(n)), int32(len(r.ACL)))
			for _, a := range r.ACL {
				table = jute.AppendUstring(jute.AppendUstring(jute.AppendInt32(table, int32(a.Perms)), a.ID.Scheme), a.ID.ID)
			}
		}
		return nil
	}); err != nil {
		o.t.Fatal(err)
	}
	snap.Release()
	b = append(jute.AppendInt32(b, n), table...)
	var visit func(path string)
	visit = func(path string) {
		r := o.record(path)
		if r.Record == nil {
			return
		}
		if numbers[aclText(r.ACL)] == 0 {
			numbers[aclText(r.ACL)] = int64(1000 + len(numbers)) // not in the table
		}
		children, _, _ := o.Tree.Children(path, []znode.ID{znode.SuperIDs})
		b = jute.AppendUstring(b, strings.TrimSuffix(path, "/"))
		b = jute.AppendInt64(jute.AppendBuffer(b, r.Data), numbers[aclText(r.ACL)])
		b = jute.AppendInt64(jute.AppendInt64(b, int64(r.Stat.Czxid)), int64(r.Stat.Mzxid))
		b = jute.AppendInt64(jute.AppendInt64(b, r.Stat.Ctime), r.Stat.Mtime)
		b = jute.AppendInt32(jute.AppendInt32(b, int32(r.Stat.Version)), int32(r.Stat.Cversion))
		b = jute.AppendInt64(jute.AppendInt32(b, int32(r.Stat.Aversion)), int64(r.Stat.EphemeralOwner))
		b = jute.AppendInt64(b, int64(r.Stat.Pzxid))
		for _, name := range children {
			o.work(o.rnd.IntN(6))
			visit(znode.Join(path, name))
		}
	}
	visit("/")
	return jute.AppendUstring(b, "/")
}

func aclText(list []znode.ACL) string { return fmt.Sprint(list) }
