package znode

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// TestTree_Random_EqualsModel runs random transactions against the tree and the
// model and compares everything after each: result codes, names, events, every
// znode's Stat, data, ACL and children, ephemerals, sizes, the digest of a tree
// built from a snapshot. Snapshots are taken at random moments and read by
// other goroutines while the writer continues; they must show their moment.
func TestTree_Random_EqualsModel(t *testing.T) {
	r := seed.Rand(t)
	for range 6 {
		h := &randomRun{t: t, r: r, tree: NewTree(), model: newModel(), read: make(chan struct{})}
		h.x = Txn{ExtendedTypes: true}
		for h.step = range 400 {
			h.once()
			if t.Failed() {
				t.FailNow()
			}
			if r.IntN(20) == 0 {
				h.freeze()
				h.freezeSubtree()
			}
			if r.IntN(60) == 0 {
				h.thaw()
			}
			if r.IntN(150) == 0 { // continue with a restored tree
				h.thaw()
				before := digestOf(h.tree)
				h.tree = rebuild(t, h.tree)
				if digestOf(h.tree) != before {
					t.Fatal("a rebuilt tree has another digest")
				}
				h.compare("rebuild")
			}
		}
		h.thaw()
	}
}

type randomRun struct {
	t     *testing.T
	r     *rand.Rand
	tree  *Tree
	model *model
	x     Txn
	step  int

	frozen sync.WaitGroup
	read   chan struct{} // closed when the waiting snapshots should be read
}

// pick chooses one of the arguments.
func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func (h *randomRun) path() string {
	p := ""
	if h.r.IntN(4) == 0 {
		p = QuotaPath
	}
	for range 1 + h.r.IntN(3) {
		p += "/" + pick(h.r, "a", "b", "c")
	}
	switch h.r.IntN(16) {
	case 0:
		return QuotaPath + pick(h.r, "/a", "/a/b", "/b") + pick(h.r, "/zookeeper_limits", "/zookeeper_stats")
	case 1:
		return pick(h.r, RootPath, SystemPath, QuotaPath, ConfigPath)
	case 2, 3, 4: // something that is there
		all := make([]string, 0, len(h.model.nodes))
		for p := range h.model.nodes {
			all = append(all, p)
		}
		slices.Sort(all)
		return pick(h.r, all...)
	}
	return p
}

func (h *randomRun) data(path string) []byte {
	switch Base(path) {
	case "zookeeper_limits":
		return fmt.Appendf(nil, "count=%d,bytes=%d=;byteHardLimit=%d;countHardLimit=%d",
			h.r.IntN(8)-1, h.r.IntN(60)-1, pick(h.r, -1, 40), pick(h.r, -1, 5))
	case "zookeeper_stats":
		return fmt.Appendf(nil, "count=%d,bytes=%d", h.r.IntN(5), h.r.IntN(50))
	}
	switch n := h.r.IntN(12); n {
	case 0:
		return nil
	default:
		return bytes.Repeat([]byte{byte(h.step)}, n-1)
	}
}

func (h *randomRun) acl() []ACL {
	return pick(h.r, OpenACL, OpenACL, OpenACL, onlyMe, grant(PermAll&^PermWrite), grant(PermRead),
		[]ACL{{PermAll, alice}, {PermRead | PermCreate, Anyone}})
}

func (h *randomRun) version() Version { return pick(h.r, AnyVersion, AnyVersion, 0, 1) }

func (h *randomRun) begin() {
	h.x.Reset()
	h.x.Zxid++
	h.x.TimeMillis += int64(h.r.IntN(20))
	h.x.Session = SessionID(1 + h.r.IntN(3))
	h.x.Identities = pick(h.r, nil, []ID{alice}, []ID{super})
	h.x.EnforceQuota = h.r.IntN(2) == 0
	h.model.events, h.model.exceeded = nil, nil
}

// once runs one transaction on both.
func (h *randomRun) once() {
	h.begin()
	what := ""
	switch h.r.IntN(12) {
	case 0:
		what = "close session"
		h.tree.DeleteOwned(&h.x, h.x.Session)
		h.model.closeSession(&h.x, h.x.Session)
	case 1:
		p := h.path()
		what = "reap " + p
		h.same(what, h.tree.Reap(&h.x, p), h.model.reap(&h.x, p))
	case 2, 3, 4:
		what = "multi"
		h.multi()
	default:
		what, _ = h.edit(h.model)
	}
	h.compare(what)
}

// edit runs one operation on the tree and on m.
func (h *randomRun) edit(m *model) (what string, code Error) {
	path := h.path()
	var want Error
	switch h.r.IntN(9) {
	case 0, 1, 2, 3:
		r := h.createRequest(path)
		what = fmt.Sprintf("create %+v", r)
		name, stat, got := h.tree.Create(&h.x, &r)
		wantName, wantCode := m.create(&h.x, &r)
		if code, want = got, wantCode; name != wantName {
			h.t.Errorf("step %d: %s: named %q, want %q", h.step, what, name, wantName)
		}
		if code == OK && want == OK && stat != m.statOf(name) {
			h.t.Errorf("step %d: %s: %+v, want %+v", h.step, what, stat, m.statOf(name))
		}
	case 4, 5:
		v := h.version()
		what = fmt.Sprintf("delete %s %d", path, v)
		code, want = h.tree.Delete(&h.x, path, v), m.delete(&h.x, path, v)
	case 6:
		v, data := h.version(), h.data(path)
		what = fmt.Sprintf("set %s %q %d", path, data, v)
		_, code = h.tree.SetData(&h.x, path, data, v)
		want = m.set(&h.x, path, data, v)
	case 7:
		v, acl := h.version(), h.acl()
		what = fmt.Sprintf("setACL %s %v %d", path, acl, v)
		_, code = h.tree.SetACL(&h.x, path, acl, v)
		want = m.setACL(&h.x, path, acl, v)
	default:
		v := h.version()
		what = fmt.Sprintf("check %s %d", path, v)
		code, want = h.tree.Check(&h.x, path, v), m.check(&h.x, path, v)
	}
	h.same(what, code, want)
	return what, code
}

func (h *randomRun) createRequest(path string) CreateRequest {
	r := CreateRequest{Path: path, Data: h.data(path), ACL: h.acl(), Mode: Mode(h.r.IntN(7))}
	if Base(path) == "zookeeper_stats" || Base(path) == "zookeeper_limits" {
		r.Mode = pick(h.r, Persistent, Ephemeral)
	}
	switch {
	case r.Mode.TTL():
		r.Kind, r.TTL = CreateTTL, int64(1+h.r.IntN(50))
	case h.r.IntN(4) == 0:
		r.Kind = CreateContainer
	}
	return r
}

// multi runs several operations as one transaction; half of those that could
// succeed are rolled back all the same.
func (h *randomRun) multi() {
	before := digestOf(h.tree)
	m := h.model.clone()
	h.tree.Begin(&h.x)
	code := OK
	for n := 1 + h.r.IntN(8); n > 0 && code == OK; n-- {
		_, code = h.edit(m)
	}
	if code == OK && h.r.IntN(2) == 0 {
		h.tree.Commit(&h.x)
		h.model = m
		return
	}
	h.tree.Rollback(&h.x)
	if digestOf(h.tree) != before {
		h.t.Errorf("step %d: a rolled back multi left a trace", h.step)
	}
}

func (h *randomRun) same(what string, got, want Error) {
	if got != want {
		h.t.Errorf("step %d: %s: %v, want %v", h.step, what, got.Name(), want.Name())
	}
}

// compare checks every possible difference.
func (h *randomRun) compare(what string) {
	h.t.Helper()
	fail := func(format string, args ...any) {
		h.t.Helper()
		h.t.Errorf("step %d, after %s: %s", h.step, what, fmt.Sprintf(format, args...))
	}
	var events []string
	for _, e := range h.x.Events {
		if e.Zxid != h.x.Zxid {
			fail("event of zxid %v in transaction %v", e.Zxid, h.x.Zxid)
		}
		events = append(events, e.Type.String()+" "+e.Path)
	}
	if what != "rebuild" && (!slices.Equal(events, h.model.events) || !slices.Equal(h.x.Exceeded, h.model.exceeded)) {
		fail("events %v, exceeded %v; want %v, %v", events, h.x.Exceeded, h.model.events, h.model.exceeded)
	}
	size := Size{Znodes: len(h.model.nodes)}
	for path, n := range h.model.nodes {
		data, st, code := h.tree.Get(path, []ID{super})
		if code != OK || !bytes.Equal(data, n.data) || (data == nil) != (n.data == nil) || st != h.model.statOf(path) {
			fail("%s: %q %+v %v; want %q %+v", path, data, st, code, n.data, h.model.statOf(path))
		}
		if acl, _, _ := h.tree.ACLOf(path, []ID{super}); !slices.Equal(acl, n.acl) {
			fail("%s: ACL %v, want %v", path, acl, n.acl)
		}
		names, _, _ := h.tree.Children(path, []ID{super})
		slices.Sort(names)
		if !slices.Equal(names, h.model.children(path)) {
			fail("%s: children %v, want %v", path, names, h.model.children(path))
		}
		if n.owner > 0 {
			size.Ephemerals++
		}
		size.Bytes += int64(len(path) + len(n.data))
	}
	for s := range SessionID(5) {
		got := h.tree.Ephemerals(s, "")
		slices.Sort(got)
		if s > 0 && !slices.Equal(got, h.model.ephemerals(s)) {
			fail("ephemerals of %v: %v, want %v", s, got, h.model.ephemerals(s))
		}
	}
	if h.tree.Size() != size {
		fail("size %+v, want %+v", h.tree.Size(), size)
	}
	checkInvariants(h.t, h.tree)
}

// freeze takes a snapshot that another goroutine compares with the model as it
// is now, at once or after many more transactions.
func (h *randomRun) freeze() {
	s, m, read := h.tree.Snapshot(), h.model.clone(), h.read
	if h.r.IntN(2) == 0 {
		read = nil
	}
	h.frozen.Go(func() {
		defer s.Release()
		if read != nil {
			<-read
		}
		if s.Len() != len(m.nodes) {
			h.t.Errorf("snapshot of %d znodes, want %d", s.Len(), len(m.nodes))
		}
		count := 0
		_ = s.Walk(func(r *Record) error {
			count++
			n, ok := m.nodes[r.Path]
			st := n.stat
			st.Cversion, st.EphemeralOwner = Version(n.born), n.owner
			if !ok || r.Stat != st || !bytes.Equal(r.Data, n.data) || !slices.Equal(r.ACL, n.acl) {
				h.t.Errorf("snapshot: %+v, want %+v", r, n)
			}
			return nil
		})
		if count != len(m.nodes) {
			h.t.Errorf("snapshot walked %d znodes, want %d", count, len(m.nodes))
		}
	})
}

func (h *randomRun) thaw() {
	close(h.read)
	h.frozen.Wait()
	h.read = make(chan struct{})
}

// checkInvariants holds the indexes against the znodes.
func checkInvariants(t *testing.T, tree *Tree) {
	t.Helper()
	uses := map[aclID]int{}
	var memory int64
	below := map[string][2]int64{} // znodes and bytes of their data
	var containers, ttls, limits int
	for i := range tree.index.shards {
		for _, n := range tree.index.shards[i].slots {
			if n == nil {
				continue
			}
			uses[n.acl]++
			memory += CreateMemory(n.path(), n.size()) + memoryOfSide(n)
			for path := n.path(); path != RootPath; {
				path = Parent(path)
				below[path] = [2]int64{below[path][0] + 1, below[path][1] + int64(n.size())}
			}
			if n.isContainer() {
				containers++
			}
			if n.isTTL() {
				ttls++
			}
			if _, ok := quotaSubject(n.path(), quotaLimitsName); ok {
				limits++
			}
			names := 0
			for slot, c := range n.childList() {
				names += len(Base(c.path()))
				if int(c.slot) != slot || tree.index.get(c.path()) != c {
					t.Errorf("child %d of %s is %s with slot %d", slot, n.path(), c.path(), c.slot)
				}
			}
			if got := tree.NamesBytes(n.path()); got != names {
				t.Errorf("the names of the children of %s have %d bytes, want %d", n.path(), got, names)
			}
		}
	}
	for path, want := range below {
		if znodes, bytes := tree.get(path).below(); int64(znodes) != want[0] || bytes != want[1] {
			t.Errorf("below %s: %d znodes with %d bytes, want %v", path, znodes, bytes, want)
		}
	}
	if len(tree.containers) != containers || len(tree.ttls) != ttls || len(tree.quotas) != limits {
		t.Errorf("indexes: %v %v %v, want %d %d %d of them", tree.containers, tree.ttls, tree.quotas,
			containers, ttls, limits)
	}
	uses[openACL]++ // the table's own
	for id, e := range tree.acls.lists {
		if e.uses != uses[aclID(id)] {
			t.Errorf("ACL %d %v has %d uses, want %d", id, e.list, e.uses, uses[aclID(id)])
		}
		if e.uses > 0 {
			memory += ACLMemory(e.list)
		}
	}
	// Each znode's eighth is rounded down.
	if off := tree.Memory() - memory; off < 0 || off > int64(tree.index.count) {
		t.Errorf("%d bytes of memory, want %d", tree.Memory(), memory)
	}
}
