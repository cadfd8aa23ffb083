package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// What was removed, or has fired, does not count for the limit any more.
func TestManager_Limit_CountsWhatIsThere(t *testing.T) {
	m := New(Limit(1))
	w := m.NewWatcher(&recorder{})
	for i := range 3 {
		path := fmt.Sprint("/", i)
		mustAdd(t, m, w, path, Data)
		if !m.Remove(w, path, znode.WatcherAny) {
			t.Fatal("nothing to remove")
		}
	}
	mustAdd(t, m, w, "/fires", Data)
	m.Trigger(changed("/fires"))
	mustAdd(t, m, w, "/last", Data)
}

// Recursive watches and events at every depth around the one from which the counters
// are shared.
func TestManager_Recursive_DeepPaths(t *testing.T) {
	at := func(depth int) string { return strings.Repeat("/x", depth) }
	for depth := depths - 3; depth < depths+3; depth++ {
		m, r := New(), &recorder{}
		w := m.NewWatcher(r)
		mustAdd(t, m, w, at(depth), Recursive)
		for below := depth; below < depths+5; below++ {
			m.Trigger(changed(at(below)))
			if got := r.take(); !slices.Equal(got, []string{"NodeDataChanged " + at(below)}) {
				t.Errorf("watch at depth %d, event at %d: %q", depth, below, got)
			}
		}
		m.Trigger(changed(at(depth - 1)))
		if got := r.take(); len(got) != 0 {
			t.Errorf("watch at depth %d, event above it: %q", depth, got)
		}
		m.Drop(w)
		m.Trigger(changed(at(depth)))
		if m.recursive[min(depth, depths-1)].Load() != 0 || len(r.take()) != 0 {
			t.Errorf("depth %d: something is left of the watch", depth)
		}
	}
}

// The reports list every watcher of the data table, and no other, however they lie
// among those of the child table.
func TestManager_Reports_AmongChildWatches(t *testing.T) {
	m := New()
	var watchers []*Watcher
	for range 4 {
		watchers = append(watchers, m.NewWatcher(&recorder{}))
	}
	for i := range 300 {
		path := fmt.Sprint("/", i)
		for j, w := range watchers {
			switch {
			case j < i%3: // 0, 1 or 2 of them watch the data
				mustAdd(t, m, w, path, Data)
			case j > 0:
				mustAdd(t, m, w, path, Child)
			}
		}
	}
	rows, more := m.ByPath(1000)
	if len(rows) != 200 || more {
		t.Errorf("%d paths, more %v, want 200", len(rows), more)
	}
	for _, row := range rows {
		var i int
		_, _ = fmt.Sscanf(row.Path, "/%d", &i)
		if len(row.Watchers) != i%3 {
			t.Errorf("%s: %d watchers, want %d", row.Path, len(row.Watchers), i%3)
		}
	}
	all, more := m.ByWatcher(1000)
	if len(all) != 2 || more || len(all[0].Paths)+len(all[1].Paths) != 300 {
		t.Errorf("%d watchers, more %v", len(all), more)
	}
	// One event reaches all four: two by their data, and on the parent the others.
	m.Trigger(znode.Event{Type: znode.EventDeleted, Path: "/2", Zxid: 1})
	for j, w := range watchers {
		if got := w.Sink().(*recorder).take(); len(got) != 1 {
			t.Errorf("watcher %d got %q", j, got)
		}
	}
}
