package watch

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

func TestManager_Reports_DataTableOnly(t *testing.T) {
	m := New()
	a, b, c := m.NewWatcher(&recorder{}), m.NewWatcher(&recorder{}), m.NewWatcher(&recorder{})
	mustAdd(t, m, a, "/x", Data, Persistent)
	mustAdd(t, m, a, "/y", Child)
	mustAdd(t, m, b, "/x", Data)
	mustAdd(t, m, b, "/z", Recursive)
	mustAdd(t, m, c, "/y", Child)
	want := Summary{Connections: 2, Paths: 2, Watches: 3, Total: 3 + 3}
	if got := m.Summary(); got != want {
		t.Errorf("Summary() = %+v, want %+v", got, want)
	}
	rows, more := m.ByPath(100)
	sort.Slice(rows, func(i, j int) bool { return rows[i].Path < rows[j].Path })
	if more || len(rows) != 2 || rows[0].Path != "/x" || len(rows[0].Watchers) != 2 ||
		rows[1].Path != "/z" || rows[1].Watchers[0] != b {
		t.Errorf("ByPath: %+v, %v", rows, more)
	}
	byW, more := m.ByWatcher(100)
	paths := map[*Watcher][]string{}
	for _, row := range byW {
		sort.Strings(row.Paths)
		paths[row.Watcher] = row.Paths
	}
	if more || len(byW) != 2 || !slices.Equal(paths[a], []string{"/x"}) ||
		!slices.Equal(paths[b], []string{"/x", "/z"}) {
		t.Errorf("ByWatcher: %v, %v", paths, more)
	}
	for limit := range 5 {
		rows, more := m.ByPath(limit)
		n := 0
		for _, row := range rows {
			n += len(row.Watchers)
		}
		if n != min(limit, 3) || more != (limit < 3) {
			t.Errorf("ByPath(%d): %d pairs, more %v", limit, n, more)
		}
		if _, more := m.ByWatcher(limit); more != (limit < 3) {
			t.Errorf("ByWatcher(%d): more %v", limit, more)
		}
	}
	counts := map[string]int{}
	for part := range Parts {
		for _, c := range m.Counts(part, nil) {
			counts[c.Path] += c.Watchers
		}
	}
	if want := map[string]int{"/x": 2, "/y": 2, "/z": 1}; !maps.Equal(counts, want) {
		t.Errorf("Counts: %v, want %v", counts, want)
	}
	if a.Sink() == nil {
		t.Error("Sink() is nil")
	}
}

// checkCounters recounts everything the Manager keeps a counter of.
func checkCounters(t testing.TB, m *Manager) {
	t.Helper()
	var want Summary
	var armed int64
	var deep [depths]int64
	conns := map[*Watcher]bool{}
	for i := range m.shards {
		s := &m.shards[i]
		for e := range s.paths.all() {
			path := e.path
			data := 0
			for w, k := range e.all() {
				if k == 0 {
					t.Errorf("%s: a watcher without a mode", path)
				}
				if _, ok := w.paths.find(e); !ok {
					t.Errorf("%s: not in the watcher's own index", path)
				}
				armed++
				data += int(k.in(dataTable))
				want.Total += k.in(dataTable) + k.in(childTable)
				if k&dataTable != 0 {
					conns[w] = true
				}
				deep[depth(path)] += k.in(hasRecursive)
			}
			want.Watches += int64(data)
			if data > 0 {
				want.Paths++
			}
			if data != e.dataWatchers() {
				t.Errorf("%s: %d data watchers, counted %d", path, data, e.dataWatchers())
			}
		}
	}
	want.Connections = int64(len(conns))
	if got := m.Summary(); got != want {
		t.Errorf("Summary() = %+v, recounted %+v", got, want)
	}
	if m.armed.Load() != armed {
		t.Errorf("armed = %d, recounted %d", m.armed.Load(), armed)
	}
	for d := range deep {
		if m.recursive[d].Load() != deep[d] {
			t.Errorf("recursive[%d] = %d, recounted %d", d, m.recursive[d].Load(), deep[d])
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
	m.Trigger(&znode.Event{Type: znode.EventDeleted, Path: "/2", Zxid: 1})
	for j, w := range watchers {
		if got := w.Sink().(*recorder).take(); len(got) != 1 {
			t.Errorf("watcher %d got %q", j, got)
		}
	}
}

func TestManager_OnAndOf(t *testing.T) {
	m := New()
	a, b := m.NewWatcher(&recorder{}), m.NewWatcher(&recorder{})
	mustAdd(t, m, a, "/x", Data, Child, Recursive)
	mustAdd(t, m, b, "/x", Persistent)
	mustAdd(t, m, a, "/y", Child)
	on, more := m.On("/x", 10)
	if got := map[*Watcher]string{}; len(on) == 2 && !more {
		for _, h := range on {
			got[h.Watcher] = fmt.Sprint(h.Path, h.Modes)
		}
		if got[a] != "/x[data child recursive]" || got[b] != "/x[persistent]" {
			t.Errorf("on /x: %v", got)
		}
	} else {
		t.Errorf("on /x: %v %t", on, more)
	}
	if on, more := m.On("/x", 1); len(on) != 1 || !more {
		t.Errorf("one on /x: %v %t", on, more)
	}
	if of, more := m.Of(a, 10); len(of) != 2 || more {
		t.Errorf("of a: %v %t", of, more)
	}
	if of, more := m.Of(a, 1); len(of) != 1 || !more {
		t.Errorf("one of a: %v %t", of, more)
	}
	if on, _ := m.On("/none", 1); len(on) != 0 {
		t.Errorf("on /none: %v", on)
	}
}

// The paths with the most watchers, whatever their modes, are listed first.
func TestManager_MostWatched(t *testing.T) {
	m := New()
	for i := range 4 {
		w := m.NewWatcher(&recorder{})
		for j := range 2 + i {
			if err := m.Add(w, fmt.Sprint("/", j), Mode(1+i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := fmt.Sprint(m.MostWatched(4), m.MostWatched(99))
	if want := "[{/0 4} {/1 4} {/2 3} {/3 2}] [{/0 4} {/1 4} {/2 3} {/3 2} {/4 1}]"; got != want {
		t.Errorf("most watched: %s, want %s", got, want)
	}
}
