package changes

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// walk returns all changes of a walk as text, and the floor.
func (k *kit) walk(p Past) (lines []string, floor znode.Zxid) {
	k.tb.Helper()
	for more := true; more; {
		k.mu.RLock()
		more = k.feed.Back(&p, func(c *Change) bool {
			lines = append(lines, fmt.Sprintf("%v %s at %d", c.Type, c.Path, c.At.Zxid))
			return true
		})
		k.mu.RUnlock()
	}
	return lines, p.Floor
}

func TestFeed_Back(t *testing.T) {
	k := newKit(t)
	k.do(made("/a"), made("/ab"), together(changed("/a"), made("/a/b")), changed("/a/b"), changed("/a"))
	for _, x := range []struct {
		p    Past
		want []string
	}{
		{Past{Path: "/a"}, []string{"NodeDataChanged /a at 5", "NodeDataChanged /a at 3", "NodeCreated /a at 1"}},
		{Past{Path: "/a", To: 3}, []string{"NodeDataChanged /a at 5"}},
		{Past{Path: "/a", Below: true, To: 2}, []string{
			"NodeDataChanged /a at 5", "NodeDataChanged /a/b at 4", "NodeCreated /a/b at 3", "NodeDataChanged /a at 3",
		}},
		{Past{Path: "/", Below: true, To: 4}, []string{"NodeDataChanged /a at 5"}},
		{Past{Path: "/none"}, nil},
	} {
		if got, floor := k.walk(x.p); !slices.Equal(got, x.want) || floor != 0 {
			t.Errorf("%+v: %q since %v, want %q", x.p, got, floor, x.want)
		}
	}
}

// A walk has each change once though it takes several parts, and others are added and discarded meanwhile.
func TestFeed_Back_InParts(t *testing.T) {
	k := newKit(t)
	k.do(made("/a"), made("/b"))
	for range 3 * scanAtATime {
		k.do(changed("/a"))
	}
	p, last, parts := Past{Path: "/a"}, znode.Zxid(0), 0
	for more := true; more; parts++ {
		k.mu.RLock()
		more = k.feed.Back(&p, func(c *Change) bool {
			if last != 0 && c.At.Zxid != last-1 && c.Type != znode.EventCreated {
				t.Fatalf("%v follows %v", c.At.Zxid, last)
			}
			last = c.At.Zxid
			return true
		})
		k.mu.RUnlock()
		k.do(changed("/a"))
	}
	if parts != 4 || last != 1 || p.From != k.zxid-znode.Zxid(parts) {
		t.Errorf("%d parts from %v to %v, want 4 from %v to 1", parts, p.From, last, k.zxid-4)
	}
	p = Past{Path: "/b"}
	k.mu.RLock()
	k.feed.Back(&p, func(*Change) bool { return true })
	k.mu.RUnlock()
	k.feed.Restart(k.zxid)
	if lines, floor := k.walk(p); len(lines) > 0 || floor != k.zxid {
		t.Errorf("after a snapshot came: %q since %v, want nothing since %v", lines, floor, k.zxid)
	}
}

// A purge leaves changes and authors, takes their values, and makes room for others.
func TestFeed_Purge(t *testing.T) {
	secret := func(path string) edit {
		return func(t *znode.Tree, x *znode.Txn) znode.Error {
			_, code := t.SetData(x, path, bytes.Repeat([]byte("secret"), 1000), znode.AnyVersion)
			return code
		}
	}
	alice := []znode.ID{{Scheme: "digest", ID: "alice:x"}}
	hers := []znode.ACL{{Perms: znode.PermAll, ID: alice[0]}}
	k := newKit(t)
	k.do(made("/a"), secret("/a"), changed("/a"), made("/a/b"), secret("/a/b"), gone("/a/b"), made("/ab"), secret("/ab"),
		createWith("/a/hers", hers), secret("/a/hers"), gone("/a/hers"), createWith("/a/kept", hers), secret("/a/kept"))
	purge := func(typ znode.EventType, path string, by []znode.ID) (left map[string]int) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.feed.Purge(&znode.Event{Type: typ, Path: path, Txn: &znode.Txn{Identities: by}}, k.tree)
		left = map[string]int{}
		sum := int64(0)
		for n, r := k.feed.record.oldest(), &k.feed.record; n < r.total; n++ {
			e := r.entry(n)
			if sum += e.bytes(); n == r.oldest() || e.may != r.entry(n-1).may {
				sum += e.may.bytes()
			}
			if bytes.Contains(e.data, []byte("secret")) || bytes.Contains(e.before, []byte("secret")) {
				left[e.path]++
			}
		}
		if have := k.feed.record.bytes; have != sum+k.feed.record.entry(0).by.bytes() {
			t.Errorf("the record counts %d bytes, want %d", have, sum)
		}
		return left
	}
	for _, x := range []struct {
		typ  znode.EventType
		path string
		by   []znode.ID
		want map[string]int
	}{
		{znode.EventPurged, "/none", nil, map[string]int{"/a": 2, "/a/b": 2, "/ab": 1, "/a/hers": 2, "/a/kept": 1}},
		{znode.EventPurged, "/a", nil, map[string]int{"/a/b": 2, "/ab": 1, "/a/hers": 2, "/a/kept": 1}},
		{znode.EventPurged, "/a/hers", nil, map[string]int{"/a/b": 2, "/ab": 1, "/a/hers": 2, "/a/kept": 1}},
		{znode.EventPurgedBelow, "/a", nil, map[string]int{"/ab": 1, "/a/hers": 2, "/a/kept": 1}},
		{znode.EventPurgedBelow, "/a", alice, map[string]int{"/ab": 1}},
		{znode.EventPurgedBelow, "/", nil, map[string]int{}},
	} {
		if left := purge(x.typ, x.path, x.by); fmt.Sprint(left) != fmt.Sprint(x.want) {
			t.Errorf("purging %s by %v leaves %v, want %v", x.path, x.by, left, x.want)
		}
	}
	if lines, _ := k.walk(Past{Path: "/a", Below: true}); len(lines) != 11 {
		t.Errorf("%d changes are left, want all 11", len(lines))
	}
	changes, err := k.subscribe(Filter{Path: "/a", Kind: KindExists, Identities: alice}, Position{}).Next(t.Context())
	if err != nil || len(changes) != 3 || !changes[1].Purged || len(changes[1].Edit.Data) > 0 {
		t.Errorf("a stream reports %+v (%v), want three purged changes", changes, err)
	}
}
