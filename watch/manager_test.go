package watch

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// TestManager_Trigger_Matrix holds the matrix of doc.go for one connection:
// what it receives from an edit, and from the same edit again, once the one-shot
// watches are consumed.
func TestManager_Trigger_Matrix(t *testing.T) {
	const (
		nodeCreated  = "NodeCreated "
		nodeDeleted  = "NodeDeleted "
		dataChanged  = "NodeDataChanged "
		childChanged = "NodeChildrenChanged "
	)
	tests := []struct {
		name    string
		watches []watchOn
		ev      *znode.Event
		first   []string
		again   []string
	}{
		{"data/created", []watchOn{{"/a", Data}}, created("/a"), []string{nodeCreated + "/a"}, nil},
		{"data/changed", []watchOn{{"/a", Data}}, changed("/a"), []string{dataChanged + "/a"}, nil},
		{"data/deleted", []watchOn{{"/a", Data}}, deleted("/a"), []string{nodeDeleted + "/a"}, nil},
		{"data/child created", []watchOn{{"/a", Data}}, created("/a/b"), nil, nil},
		{"data/child deleted", []watchOn{{"/a", Data}}, deleted("/a/b"), nil, nil},
		{"data/child changed", []watchOn{{"/a", Data}}, changed("/a/b"), nil, nil},
		{"data/longer name", []watchOn{{"/a", Data}}, changed("/ab"), nil, nil},
		{"child/changed", []watchOn{{"/a", Child}}, changed("/a"), nil, nil},
		{"child/created", []watchOn{{"/a", Child}}, created("/a"), nil, nil},
		{"child/deleted", []watchOn{{"/a", Child}}, deleted("/a"), []string{nodeDeleted + "/a"}, nil},
		{"child/child created", []watchOn{{"/a", Child}}, created("/a/b"),
			[]string{childChanged + "/a"}, nil},
		{"child/child deleted", []watchOn{{"/a", Child}}, deleted("/a/b"),
			[]string{childChanged + "/a"}, nil},
		{"child/child changed", []watchOn{{"/a", Child}}, changed("/a/b"), nil, nil},
		{"child/grandchild", []watchOn{{"/a", Child}}, created("/a/b/c"), nil, nil},
		{"child/of the root", []watchOn{{"/", Child}}, created("/a"), []string{childChanged + "/"}, nil},
		{"data/of the root", []watchOn{{"/", Data}}, changed("/"), []string{dataChanged + "/"}, nil},
		{"one copy of deleted", []watchOn{{"/a", Data}, {"/a", Child}}, deleted("/a"),
			[]string{nodeDeleted + "/a"}, nil},
		{"deleted before children changed", []watchOn{{"/a", Data}, {"/", Child}}, deleted("/a"),
			[]string{nodeDeleted + "/a", childChanged + "/"}, nil},
		{"created before children changed", []watchOn{{"/", Child}, {"/a", Data}}, created("/a"),
			[]string{nodeCreated + "/a", childChanged + "/"}, nil},
		{"persistent/own", []watchOn{{"/a", Persistent}}, changed("/a"),
			[]string{dataChanged + "/a"}, []string{dataChanged + "/a"}},
		{"persistent/deleted once", []watchOn{{"/a", Persistent}}, deleted("/a"),
			[]string{nodeDeleted + "/a"}, []string{nodeDeleted + "/a"}},
		{"persistent/children", []watchOn{{"/a", Persistent}}, created("/a/b"),
			[]string{childChanged + "/a"}, []string{childChanged + "/a"}},
		{"persistent/child changed", []watchOn{{"/a", Persistent}}, changed("/a/b"), nil, nil},
		{"persistent and data", []watchOn{{"/a", Persistent}, {"/a", Data}}, changed("/a"),
			[]string{dataChanged + "/a"}, []string{dataChanged + "/a"}},
		{"recursive/own", []watchOn{{"/a", Recursive}}, changed("/a"),
			[]string{dataChanged + "/a"}, []string{dataChanged + "/a"}},
		{"recursive/path of the changed", []watchOn{{"/a", Recursive}}, created("/a/b/c"),
			[]string{nodeCreated + "/a/b/c"}, []string{nodeCreated + "/a/b/c"}},
		{"recursive/deleted", []watchOn{{"/a", Recursive}}, deleted("/a/b"),
			[]string{nodeDeleted + "/a/b"}, []string{nodeDeleted + "/a/b"}},
		{"recursive/longer name", []watchOn{{"/a", Recursive}}, created("/ab/c"), nil, nil},
		{"recursive/root", []watchOn{{"/", Recursive}}, changed("/a"),
			[]string{dataChanged + "/a"}, []string{dataChanged + "/a"}},
		{"recursive/root itself", []watchOn{{"/", Recursive}}, changed("/"),
			[]string{dataChanged + "/"}, []string{dataChanged + "/"}},
		{"recursive/twice above", []watchOn{{"/", Recursive}, {"/a", Recursive}, {"/a/b", Data}},
			changed("/a/b"), []string{dataChanged + "/a/b"}, []string{dataChanged + "/a/b"}},
		{"recursive above, child below", []watchOn{{"/", Recursive}, {"/a/b", Child}}, deleted("/a/b"),
			[]string{nodeDeleted + "/a/b"}, []string{nodeDeleted + "/a/b"}},
		{"recursive and persistent", []watchOn{{"/a", Recursive}, {"/a", Persistent}}, created("/a/b"),
			[]string{nodeCreated + "/a/b", childChanged + "/a"},
			[]string{nodeCreated + "/a/b", childChanged + "/a"}},
		{"recursive and child", []watchOn{{"/a", Recursive}, {"/a", Child}}, created("/a/b"),
			[]string{nodeCreated + "/a/b", childChanged + "/a"}, []string{nodeCreated + "/a/b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, r := New(), &recorder{}
			w := m.NewWatcher(r)
			for _, on := range tt.watches {
				mustAdd(t, m, w, on.path, on.mode)
			}
			for i, want := range [][]string{tt.first, tt.again} {
				m.Trigger(tt.ev)
				if got := r.take(); !slices.Equal(got, want) {
					t.Errorf("time %d: got %q, want %q", i+1, got, want)
				}
			}
			checkCounters(t, m)
		})
	}
}

func TestManager_Trigger_SharesOneNotification(t *testing.T) {
	m := New()
	var sinks []*recorder
	for i := range 5 {
		r := &recorder{}
		sinks = append(sinks, r)
		w := m.NewWatcher(r)
		mustAdd(t, m, w, "/a", []Mode{Data, Child, Persistent}[i%3])
		mustAdd(t, m, w, "/", Child)
	}
	own := []znode.ACL{{Perms: znode.PermRead, ID: znode.ID{Scheme: "ip", ID: "10.0.0.1"}}}
	m.Trigger(&znode.Event{Type: znode.EventDeleted, Path: "/a", Zxid: 42, ACL: own,
		ParentACL: znode.OpenACL})
	for i, r := range sinks {
		if len(r.notes) != 2 || r.notes[0] != sinks[0].notes[0] || r.notes[1] != sinks[0].notes[1] {
			t.Fatalf("watcher %d got %q, not the same two notifications", i, r.got)
		}
	}
	del, kids := sinks[0].notes[0], sinks[0].notes[1]
	if del.Zxid != 42 || kids.Zxid != 42 {
		t.Errorf("zxids %s and %s, want 0x2a", del.Zxid, kids.Zxid)
	}
	if &del.ACL[0] != &own[0] || &kids.ACL[0] != &znode.OpenACL[0] {
		t.Error("the znode's ACL goes with NodeDeleted, the parent's with NodeChildrenChanged")
	}
}

// TestManager_Remove_Kinds holds DataTree.removeWatch and containsWatcher:
// modes 1 and 2 mean the one-shot watches only, 3 everything.
func TestManager_Remove_Kinds(t *testing.T) {
	all := []Mode{Data, Child, Persistent, Recursive}
	covers := map[znode.WatcherType][]Mode{
		znode.WatcherChildren: {Child}, znode.WatcherData: {Data}, znode.WatcherAny: all,
		znode.WatcherPersistent: {Persistent}, znode.WatcherRecursive: {Recursive}, 0: nil, 6: nil, -1: nil,
	}
	for set := range 1 << len(all) {
		for kind, modes := range covers {
			m := New()
			w, other := m.NewWatcher(&recorder{}), m.NewWatcher(&recorder{})
			mustAdd(t, m, other, "/a", all...)
			want := false
			var left []Mode
			for i, mode := range all {
				switch {
				case set&(1<<i) == 0:
					continue
				case slices.Contains(modes, mode):
					want = true
				default:
					left = append(left, mode)
				}
				mustAdd(t, m, w, "/a", mode)
			}
			if got := m.Contains(w, "/a", kind); got != want {
				t.Errorf("set %04b: Contains(%d) = %v", set, kind, got)
			}
			if got := m.Remove(w, "/a", kind); got != want {
				t.Errorf("set %04b: Remove(%d) = %v", set, kind, got)
			}
			if m.Contains(w, "/a", kind) || m.Remove(w, "/a", kind) {
				t.Errorf("set %04b: kind %d is still there after Remove", set, kind)
			}
			for _, mode := range left {
				if !m.Contains(w, "/a", map[Mode]znode.WatcherType{Data: znode.WatcherData, Child: znode.WatcherChildren,
					Persistent: znode.WatcherPersistent, Recursive: znode.WatcherRecursive}[mode]) {
					t.Errorf("set %04b: Remove(%d) took the %s watch too", set, kind, mode)
				}
			}
			if !m.Contains(other, "/a", znode.WatcherAny) {
				t.Error("Remove took another connection's watch")
			}
			checkCounters(t, m)
		}
	}
}

func TestManager_Add_Errors(t *testing.T) {
	m := New(Limit(2))
	w := m.NewWatcher(&recorder{})
	for _, mode := range []Mode{0, Recursive + 1, 200} {
		if err := m.Add(w, "/a", mode); !errors.Is(err, znode.ErrBadArguments) {
			t.Errorf("Add with %s: %v", mode, err)
		}
	}
	mustAdd(t, m, w, "/a", Data, Child)
	mustAdd(t, m, w, "/b", Data)
	err := m.Add(w, "/c", Data)
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Limit != 2 || limit.Path != "/c" ||
		!errors.Is(err, znode.ErrThrottled) {
		t.Errorf("Add beyond the limit: %v", err)
	}
	mustAdd(t, m, w, "/b", Persistent) // a further mode on a known path is no further path
	m.Trigger(changed("/a"))
	m.Trigger(created("/a/x"))
	mustAdd(t, m, w, "/c", Data) // /a has been consumed
	m.Drop(w)
	m.Drop(w)
	if err := m.Add(w, "/d", Data); !errors.Is(err, ErrDropped) {
		t.Errorf("Add after Drop: %v", err)
	}
	if got := m.Summary(); got != (Summary{}) {
		t.Errorf("after Drop: %+v", got)
	}
}

func TestManager_Drop_NotifiesNoMore(t *testing.T) {
	m, r, other := New(), &recorder{}, &recorder{}
	w, o := m.NewWatcher(r), m.NewWatcher(other)
	for _, p := range []string{"/", "/a", "/a/b"} {
		mustAdd(t, m, w, p, Data, Child, Persistent, Recursive)
		mustAdd(t, m, o, p, Persistent)
	}
	m.Drop(w)
	m.Trigger(deleted("/a/b"))
	if len(r.got) != 0 {
		t.Errorf("a dropped watcher got %q", r.got)
	}
	if want := []string{"NodeDeleted /a/b", "NodeChildrenChanged /a"}; !slices.Equal(other.got, want) {
		t.Errorf("the other got %q, want %q", other.got, want)
	}
	checkCounters(t, m)
}

// reentrant removes, adds and drops within Notify.
type reentrant struct {
	m    *Manager
	self *Watcher
	n    int
}

func (r *reentrant) Notify(n *Notification) {
	r.n++
	r.m.Remove(r.self, n.Path, znode.WatcherAny)
	if r.n == 1 {
		_ = r.m.Add(r.self, n.Path, Data)
		return
	}
	r.m.Drop(r.self)
}

func TestManager_Trigger_AllowsCallsFromNotify(t *testing.T) {
	m := New()
	r := &reentrant{m: m}
	r.self = m.NewWatcher(r)
	mustAdd(t, m, r.self, "/a", Data, Persistent)
	for range 3 {
		m.Trigger(changed("/a"))
	}
	if r.n != 2 {
		t.Errorf("%d notifications, want 2: re-armed once, then dropped", r.n)
	}
	checkCounters(t, m)
}

// A change looks at the paths above it that have a recursive watch at their depth, and at no other, however many watches
// there are: Trigger returns although all other shards are locked.
func TestManager_Recursive_CostsByDepth(t *testing.T) {
	m, got := New(), &recorder{}
	w, others := m.NewWatcher(got), m.NewWatcher(discard{})
	const changes = "/a/b/c/d/e"
	for i := range 20_000 {
		mustAdd(t, m, others, fmt.Sprintf("/x%d", i), Recursive)
		mustAdd(t, m, others, fmt.Sprintf("/x/y/z%d", i), Recursive)
	}
	mustAdd(t, m, w, "/a/b/c", Recursive)
	looked := map[*shard]bool{}
	for _, path := range []string{"/a", "/a/b/c", changes} { // none is at the depths of / and /a/b
		s, _ := m.shard(path)
		looked[s] = true
	}
	for i := range m.shards {
		if s := &m.shards[i]; !looked[s] {
			s.mu.Lock()
			defer s.mu.Unlock()
		}
	}
	m.Trigger(changed(changes))
	if want := []string{"NodeDataChanged " + changes}; !slices.Equal(got.take(), want) {
		t.Errorf("want %q", want)
	}
}
