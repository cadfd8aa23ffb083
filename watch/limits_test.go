package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// Watches that were removed or have fired no longer count for the limit.
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

// A thousand watches on missing paths of a megabyte took a gigabyte, and one connection may leave 262,144. Beyond the
// limit each watcher has a share, and what goes makes room.
func TestRegression_Watches_AreBoundedInBytes(t *testing.T) {
	m := New(Bytes(8 << 20))
	greedy, modest := m.NewWatcher(&recorder{}), m.NewWatcher(&recorder{})
	long := func(i int) string { return fmt.Sprint("/", i, strings.Repeat("x", 500_000)) }
	taken := 0
	var err error
	for err == nil {
		if err = m.Add(greedy, long(taken), Data); err == nil {
			taken++
		}
	}
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Bytes != 8<<20 || taken != 16 {
		t.Errorf("got %v after %d watches, want a LimitError after 16", err, taken)
	}
	for i := range 1000 {
		mustAdd(t, m, modest, fmt.Sprint("/modest", i), Data)
	}
	m.Trigger(changed(long(0)))
	for i := range 3 {
		if !m.Remove(greedy, long(i+1), znode.WatcherAny) {
			t.Errorf("watch %d is gone", i+1)
		}
	}
	mustAdd(t, m, greedy, long(taken), Data)
	m.Drop(greedy)
	m.Drop(modest)
	if got := m.bytes.Load(); got != 0 {
		t.Errorf("got %d bytes without watches, want 0", got)
	}
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
