package replica_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// fields puts the fields of a record together.
func fields(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = jute.AppendInt32(b, int32(v))
		case int64:
			b = jute.AppendInt64(b, v)
		case bool:
			b = jute.AppendBool(b, v)
		case string:
			b = jute.AppendUstring(b, v)
		case []byte:
			b = jute.AppendBuffer(b, v)
		case nil:
			b = jute.AppendBuffer(b, nil)
		}
	}
	return b
}

// header is a TxnHeader: session 7, cxid 8, zxid 9, time 10.
func header(op replica.Op) []byte { return fields(int64(7), 8, int64(9), int64(10), int(op)) }

// Every type of record is decoded as zookeeper.jute and SerializeUtils have it.
func TestParseTxn(t *testing.T) {
	acl := []any{1, 31, "world", "anyone"}
	join := func(parts ...[]any) (all []any) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	open, digest := znode.OpenACL, []any{2, int64(77)}
	inner := func(values ...any) []byte { return fields(values...) }
	for _, c := range []struct {
		name   string
		op     replica.Op
		record []any
		want   replica.Change
		digest bool
	}{
		{"create", 1, join([]any{"/a", []byte("d")}, acl, []any{true, 3}, digest),
			replica.Change{Path: "/a", Data: []byte("d"), ACL: open, Ephemeral: true, Creates: 3}, true},
		{"create of 3.3, without the parent's version", 1, join([]any{"/a", nil}, acl, []any{false}),
			replica.Change{Path: "/a", ACL: open, Creates: -1}, false},
		{"create2", 15, join([]any{"/a", []byte{}}, acl, []any{false, 3}, digest),
			replica.Change{Path: "/a", Data: []byte{}, ACL: open, Creates: 3}, true},
		{"createContainer", 19, join([]any{"/c", nil}, acl, []any{4}), replica.Change{Path: "/c", ACL: open, Creates: 4}, false},
		{"createTTL", 21, join([]any{"/t", nil}, acl, []any{5, int64(6)}, digest),
			replica.Change{Path: "/t", ACL: open, Creates: 5, TTL: 6}, true},
		{"delete", 2, []any{"/a"}, replica.Change{Path: "/a"}, false},
		{"deleteContainer", 20, join([]any{"/a"}, digest), replica.Change{Path: "/a"}, true},
		{"setData", 5, []any{"/a", []byte("x"), 4}, replica.Change{Path: "/a", Data: []byte("x"), Version: 4}, false},
		{"reconfig", 16, []any{"/zookeeper/config", []byte("x"), 4},
			replica.Change{Path: "/zookeeper/config", Data: []byte("x"), Version: 4}, false},
		{"setACL", 7, join([]any{"/a"}, acl, []any{2}, digest), replica.Change{Path: "/a", ACL: open, Version: 2}, true},
		{"error", -1, []any{-101}, replica.Change{Code: znode.ErrNoNode}, false},
		{"createSession", -10, join([]any{9000}, digest), replica.Change{Timeout: 9000}, true},
		{"closeSession of 3.5", -11, nil, replica.Change{}, false},
		{"closeSession without its record, with a digest", -11, digest, replica.Change{}, true},
		{"closeSession", -11, join([]any{2, "/a", "/b"}, digest), replica.Change{Closed: []string{"/a", "/b"}}, true},
		{"closeSession of no ephemeral", -11, []any{0}, replica.Change{}, false},
		{"multi", 14, join([]any{3, 13, inner("/a", 1), 1, inner(join([]any{"/b", nil}, acl, []any{true, 2})...), 2, inner("/c")}, digest),
			replica.Change{Multi: []replica.Change{
				{Op: replica.OpCheck, Path: "/a", Version: 1},
				{Op: replica.OpCreate, Path: "/b", ACL: open, Ephemeral: true, Creates: 2},
				{Op: replica.OpDelete, Path: "/c"},
			}}, true},
	} {
		got, err := replica.ParseTxn(append(header(c.op), fields(c.record...)...))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		want := replica.Txn{Session: 7, Cxid: 8, Zxid: 9, Time: 10, Change: c.want, HasDigest: c.digest}
		if want.Op = c.op; c.digest {
			want.Digest = 77
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, want %+v", c.name, *got, want)
		}
	}
}

func TestParseTxn_Refuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":               nil,
		"half a header":         header(1)[:20],
		"an unknown type":       header(99),
		"a short record":        append(header(5), fields("/a")...),
		"a session in a multi":  append(header(14), fields(1, -10, fields(5))...),
		"a multi in a multi":    append(header(14), fields(1, 14, fields(0))...),
		"a long count":          append(header(14), fields(1<<30)...),
		"bytes behind":          append(header(2), fields("/a", 1)...),
		"a bad record in multi": append(header(14), fields(1, 5, fields("/a"))...),
	} {
		if txn, err := replica.ParseTxn(b); err == nil {
			t.Errorf("%s is decoded as %+v", name, txn)
		}
	}
	if _, err := replica.ParseTxn(header(99)); !errors.Is(err, replica.ErrUnknownOp) {
		t.Errorf("an unknown type: %v, want %v", err, replica.ErrUnknownOp)
	}
}

// What no leader can have committed is refused, unless the state is fuzzy; a multi that failed changes nothing.
func TestReplica_Apply(t *testing.T) {
	open := znode.OpenACL
	create := func(path string) replica.Change {
		return replica.Change{Op: replica.OpCreate, Path: path, ACL: open, Creates: -1}
	}
	for _, c := range []struct {
		name   string
		change replica.Change
		fuzzy  bool // fits a fuzzy state
		strict bool // fits a state that is not
	}{
		{"create without a parent", create("/no/a"), true, false},
		{"create again", create("/a"), true, false},
		{"delete of none", replica.Change{Op: replica.OpDelete, Path: "/no"}, true, false},
		{"delete of a parent", replica.Change{Op: replica.OpDelete, Path: "/a"}, true, false},
		{"delete of the system", replica.Change{Op: replica.OpDelete, Path: "/zookeeper"}, false, false},
		{"setData of none", replica.Change{Op: replica.OpSetData, Path: "/no"}, true, false},
		{"setACL of none", replica.Change{Op: replica.OpSetACL, Path: "/no", ACL: open}, true, false},
		{"an empty ACL", replica.Change{Op: replica.OpSetACL, Path: "/a"}, false, false},
		{"a bad path", create("a"), false, false},
		{"a TTL of 0", replica.Change{Op: replica.OpCreateTTL, Path: "/t", ACL: open, Creates: -1}, false, false},
		{"a session with 0xff on top", replica.Change{Op: replica.OpCreateSession, Timeout: 1}, false, false},
		{"a check", replica.Change{Op: replica.OpCheck, Path: "/no"}, true, true},
		{"reconfig", replica.Change{Op: replica.OpReconfig, Path: znode.ConfigPath, Data: []byte("x")}, true, true},
		{"a multi that failed", replica.Change{Op: replica.OpMulti, Multi: []replica.Change{
			create("/new"), {Op: replica.OpError, Code: znode.ErrBadVersion}}}, true, true},
		{"an unknown type", replica.Change{Op: 99}, false, false},
	} {
		for _, fuzzy := range []bool{true, false} {
			r := replica.New(znode.NewTree(), session.NewTable(), 0)
			x := new(znode.Txn)
			for i, path := range []string{"/a", "/a/b"} {
				if err := r.Apply(x, &replica.Txn{Zxid: znode.Zxid(i + 1), Change: create(path)}, false); err != nil {
					t.Fatal(err)
				}
			}
			txn := replica.Txn{Session: -1 << 56, Zxid: 3, Change: c.change}
			want := c.strict
			if fuzzy {
				want = c.fuzzy
			}
			if err := r.Apply(x, &txn, fuzzy); (err == nil) != want {
				t.Errorf("%s, fuzzy %v: %v, want success: %v", c.name, fuzzy, err, want)
			}
			if _, code := r.Tree.Exists("/new", nil); code != znode.ErrNoNode {
				t.Errorf("%s: /new is there", c.name)
			}
			config, _, _ := r.Tree.Get(znode.ConfigPath, nil)
			if len(config) > 0 {
				t.Errorf("%s: %s has %q", c.name, znode.ConfigPath, config)
			}
		}
	}
}

// An owner with 0xff on top is a TTL or would destroy an ensemble.
func TestCheckOwner(t *testing.T) {
	for owner, good := range map[uint64]bool{
		0: true, 0x0100_0000_0000_0001: true, 0x8000_0000_0000_0000: true, 0xff00_0000_0000_0001: true,
		0xff00_00ff_ffff_ffff: true, 0xff00_0100_0000_0001: false, 0xff12_3456_789a_0000: false, 0xff00_0000_0000_0000: false,
	} {
		if err := replica.CheckOwner(znode.SessionID(owner)); (err == nil) != good {
			t.Errorf("CheckOwner(%#x) = %v, want success: %v", owner, err, good)
		}
	}
}

// What comes from outside never makes ParseTxn panic, and what it accepts can be applied to a fuzzy state or is refused.
func FuzzParseTxn(f *testing.F) {
	f.Add(append(header(1), fields("/a", []byte("d"), 1, 31, "world", "anyone", true, 3)...))
	f.Add(append(header(14), fields(1, 2, fields("/c"), 2, int64(5))...))
	f.Add(append(header(-11), fields(1, "/a")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		txn, err := replica.ParseTxn(b)
		if err != nil {
			return
		}
		r := replica.New(znode.NewTree(), session.NewTable(), 0)
		if err := r.Apply(new(znode.Txn), txn, true); err == nil {
			if again := replica.New(r.Tree, r.Sessions, r.Zxid); again.Digest() != r.Digest() {
				t.Errorf("digest %#x after %+v, and %#x of the same tree", r.Digest(), txn, again.Digest())
			}
		}
	})
}
