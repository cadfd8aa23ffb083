package watch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// model is the naive implementation: two tables as lists of (watcher, path,
// mode), read off ZooKeeper's description rather than the Manager's structure.
type model struct {
	data, child []modelWatch
}

type modelWatch struct {
	who  int
	path string
	mode Mode
}

func (md *model) add(who int, path string, mode Mode) {
	put := func(table *[]modelWatch) {
		if x := (modelWatch{who, path, mode}); !slices.Contains(*table, x) {
			*table = append(*table, x)
		}
	}
	switch mode {
	case Data, Recursive:
		put(&md.data)
	case Child:
		put(&md.child)
	case Persistent:
		put(&md.data)
		put(&md.child)
	}
}

// fire returns the watchers to notify in a table, each once, and drops one-shot
// watches.
func fire(table *[]modelWatch, path string, but map[int]bool) map[int]bool {
	woken := map[int]bool{}
	var left []modelWatch
	for _, x := range *table {
		under := x.path == "/" || strings.HasPrefix(path, x.path+"/")
		switch {
		case x.path == path || x.mode == Recursive && under:
			if !but[x.who] {
				woken[x.who] = true
			}
			if x.mode == Data || x.mode == Child {
				continue
			}
		}
		left = append(left, x)
	}
	*table = left
	return woken
}

func (md *model) trigger(ev znode.Event) map[int][]string {
	got := map[int][]string{}
	note := func(woken map[int]bool, typ znode.EventType, path string) {
		for who := range woken {
			got[who] = append(got[who], typ.String()+" "+path)
		}
	}
	first := fire(&md.data, ev.Path, nil)
	note(first, ev.Type, ev.Path)
	if ev.Type == znode.EventDeleted {
		note(fire(&md.child, ev.Path, first), ev.Type, ev.Path)
	}
	if ev.Type != znode.EventDataChanged {
		parent := znode.Parent(ev.Path)
		note(fire(&md.child, parent, nil), znode.EventChildrenChanged, parent)
	}
	return got
}

// cut takes away what match selects and reports whether there was anything.
func (md *model) cut(match func(x modelWatch, data bool) bool) bool {
	before := len(md.data) + len(md.child)
	md.data = slices.DeleteFunc(md.data, func(x modelWatch) bool { return match(x, true) })
	md.child = slices.DeleteFunc(md.child, func(x modelWatch) bool { return match(x, false) })
	return len(md.data)+len(md.child) != before
}

func (md *model) remove(who int, path string, kind znode.WatcherType) bool {
	return md.cut(func(x modelWatch, data bool) bool {
		if x.who != who || x.path != path {
			return false
		}
		switch kind {
		case znode.WatcherChildren:
			return !data && x.mode == Child
		case znode.WatcherData:
			return data && x.mode == Data
		case znode.WatcherPersistent:
			return x.mode == Persistent
		case znode.WatcherRecursive:
			return x.mode == Recursive
		}
		return true
	})
}

// TestManager_Model_RandomOperations runs random operations on the Manager and
// the model side by side and compares every notification and every answer.
func TestManager_Model_RandomOperations(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(20) {
		if runModel(t, first+i, 4000); t.Failed() {
			t.Fatalf("seed %d", first+i)
		}
	}
}

// TestManager_Model_Fanout does the same while a goroutine notifies those who share a path.
func TestManager_Model_Fanout(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(20) {
		if runModel(t, first+i, 4000, Fanout(2)); t.Failed() {
			t.Fatalf("seed %d", first+i)
		}
	}
}

func runModel(t *testing.T, seed uint64, steps int, opts ...Option) {
	const watchers = 12 // more than the slots of a set that may be full
	rnd := rand.New(rand.NewPCG(seed, 0))
	paths := []string{"/", "/a", "/ab", "/a/b", "/a/b/c", "/a/bc", "/d", "/d/e", "/d/e/f/g"}
	m, md := New(opts...), &model{}
	sinks := make([]*recorder, watchers)
	ws := make([]*Watcher, watchers)
	for i := range ws {
		sinks[i] = &recorder{}
		ws[i] = m.NewWatcher(sinks[i])
	}
	wants := make([][]string, watchers)
	compare := func(step, i int, last string) {
		ws[i].CatchUp()
		if got := sinks[i].take(); !slices.Equal(got, wants[i]) {
			t.Errorf("step %d: watcher %d got %q, want %q; the last: %s", step, i, got, wants[i], last)
		}
		wants[i] = nil
	}
	for step := range steps {
		who, path := rnd.IntN(watchers), paths[rnd.IntN(len(paths))]
		switch op := rnd.IntN(20); {
		case op < 8:
			mode := Mode(1 + rnd.IntN(4))
			mustAdd(t, m, ws[who], path, mode)
			md.add(who, path, mode)
		case op < 11:
			kind := znode.WatcherType(1 + rnd.IntN(5))
			if has := m.Contains(ws[who], path, kind); has != m.Remove(ws[who], path, kind) {
				t.Errorf("step %d: Contains = %v and Remove disagree", step, has)
			} else if has != md.remove(who, path, kind) {
				t.Errorf("step %d: Remove(%d, %s, %d) = %v", step, who, path, kind, has)
			}
		case op == 11:
			compare(step, who, "Drop")
			m.Drop(ws[who])
			md.cut(func(x modelWatch, _ bool) bool { return x.who == who })
			ws[who] = m.NewWatcher(sinks[who])
		default:
			ev := znode.Event{Type: znode.EventType(1 + rnd.IntN(3)), Path: path}
			if path == "/" {
				ev.Type = znode.EventDataChanged // the root is never made nor deleted
			}
			m.Trigger(&ev)
			want := md.trigger(ev)
			for i := range ws {
				wants[i] = append(wants[i], want[i]...)
				if m.fanout == 0 || rnd.IntN(4) == 0 { // else several are due
					compare(step, i, fmt.Sprint(ev.Type, " ", ev.Path))
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	for i := range ws {
		compare(steps, i, "end")
	}
	checkCounters(t, m)
	for _, w := range ws {
		m.Drop(w)
	}
	if got := m.Summary(); got != (Summary{}) || m.armed.Load() != 0 {
		t.Errorf("after dropping all: %+v", got)
	}
}
