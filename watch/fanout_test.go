package watch

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zk-lite/zk-lite/znode"
)

// stuck is a Sink that takes nothing until it is released.
type stuck struct{ release chan struct{} }

func (s stuck) Notify(*Notification) { <-s.release }

// behind returns watchers of a Manager whose goroutine gets stuck at the first of them that it notifies of anything on
// /stuck. The others have nothing there.
func behind(t *testing.T, m *Manager) (release func()) {
	s := stuck{make(chan struct{})}
	for range 2 {
		mustAdd(t, m, m.NewWatcher(s), "/stuck", Persistent)
	}
	m.Trigger(changed("/stuck"))
	return func() { close(s.release) }
}

// A connection gets what it is owed in the order of the log before what it asks for, whatever is before it: events of
// fanouts, of a path with few watchers, and of both tables, each once.
func TestFanout_CatchUp_InOrder(t *testing.T) {
	m := New(Fanout(2))
	release := behind(t, m)
	var got [3]recorder
	var ws [3]*Watcher
	for i := range ws {
		ws[i] = m.NewWatcher(&got[i])
		mustAdd(t, m, ws[i], "/a", Data, Child)
		mustAdd(t, m, ws[i], "/", Recursive)
	}
	mustAdd(t, m, ws[0], "/few", Child)
	m.Trigger(changed("/a"))     // the data watches, and the recursive ones: one event
	m.Trigger(created("/few/x")) // /few has one watcher
	m.Trigger(deleted("/a"))
	const first = "NodeDataChanged /a"
	want := []string{first, "NodeCreated /few/x", "NodeChildrenChanged /few", "NodeDeleted /a"}
	for _, w := range ws[1:] {
		if w.CatchUp(); m.Contains(w, "/a", znode.WatcherAny) {
			t.Error("a watch that has fired is there")
		}
	}
	if !slices.Equal(got[1].got, slices.DeleteFunc(slices.Clone(want), func(s string) bool {
		return s == want[2]
	})) || !slices.Equal(got[1].got, got[2].got) {
		t.Errorf("got %q and %q, want %q without the child event", got[1].got, got[2].got, want)
	}
	// The first was caught up with before it was notified of /few, and is owed the rest.
	if !slices.Equal(got[0].got, want[:3]) {
		t.Errorf("got %q, want %q", got[0].got, want[:3])
	}
	ws[0].CatchUp()
	if !slices.Equal(got[0].got, want) {
		t.Errorf("got %q, want %q", got[0].got, want)
	}
	release()
}

// Watches that have fired are gone at once, in every count, and can be set again before their event is delivered. Those
// of other modes on the same path stay.
func TestFanout_OneShot_GoneAtOnce(t *testing.T) {
	for _, stays := range []bool{false, true} {
		m := New(Fanout(2))
		release := behind(t, m)
		var got [3]recorder
		var ws [3]*Watcher
		for i := range ws {
			ws[i] = m.NewWatcher(&got[i])
			mustAdd(t, m, ws[i], "/a", Data)
		}
		if stays {
			mustAdd(t, m, ws[2], "/a", Child)
		}
		m.Trigger(changed("/a"))
		for i, w := range ws {
			if m.Contains(w, "/a", znode.WatcherData) {
				t.Errorf("watch %d has fired and is there", i)
			}
		}
		if m.Contains(ws[2], "/a", znode.WatcherChildren) != stays {
			t.Error("the child watch is not what it was")
		}
		mustAdd(t, m, ws[0], "/a", Data)
		m.Trigger(changed("/a"))
		m.Drop(ws[1]) // while its event is due
		for _, w := range ws {
			w.CatchUp()
		}
		if n := len(got[0].got); n != 2 {
			t.Errorf("%d events of two watches", n)
		}
		release()
		mustAdd(t, m, ws[0], "/a", Data)
		checkCounters(t, m)
		m.Drop(ws[0])
		m.Drop(ws[2])
		m.Drop(ws[1])
		if n := m.armed.Load(); n != 2 {
			t.Errorf("%d watches are left, want the two that were stuck", n)
		}
	}
}

// A lasting watch that is set or removed while a fanout has the others changes nothing for it.
func TestFanout_Lasting_AsTheyWere(t *testing.T) {
	m := New(Fanout(2))
	release := behind(t, m)
	var got [4]recorder
	var ws [4]*Watcher
	for i := range ws {
		ws[i] = m.NewWatcher(&got[i])
		if i < 3 {
			mustAdd(t, m, ws[i], "/a", Persistent)
		}
	}
	m.Trigger(changed("/a"))
	m.Remove(ws[0], "/a", znode.WatcherAny)
	mustAdd(t, m, ws[3], "/a", Persistent)
	m.Trigger(deleted("/a"))
	want := [4]int{1, 2, 2, 1}
	for i, w := range ws {
		if w.CatchUp(); len(got[i].got) != want[i] {
			t.Errorf("watcher %d got %q, want %d events", i, got[i].got, want[i])
		}
	}
	release()
}

// Trigger waits when the goroutine is far behind, and goes on when it has caught up.
func TestFanout_FarBehind_TriggerWaits(t *testing.T) {
	for name, bound := range map[string]func(m *Manager){
		"fanouts": func(m *Manager) {
			for len(m.backlog.fanouts()) < maxFanouts {
				m.Trigger(changed("/stuck"))
			}
		},
		"watchers": func(m *Manager) {
			m.backlog.mu.Lock()
			m.backlog.behind = maxBehind - 1 // as of so many watchers
			m.backlog.mu.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New(Fanout(2))
				release := behind(t, m)
				bound(m)
				returned := false
				go func() { m.Trigger(changed("/stuck")); returned = true }()
				if synctest.Wait(); returned {
					t.Fatal("Trigger returned")
				}
				release()
				if synctest.Wait(); !returned || len(m.backlog.fanouts()) > 0 {
					t.Error("Trigger waits still, or something is left", returned)
				}
			})
		})
	}
}

// ordered is a Sink that checks that zxids rise.
type ordered struct {
	last  znode.Zxid
	count int
	wrong bool
}

func (o *ordered) Notify(n *Notification) {
	o.wrong = o.wrong || n.Zxid <= o.last
	o.last = n.Zxid
	o.count++
}

// Connections that catch up, set watches, and go, at any moment: each event once, in order.
func TestFanout_Concurrent(t *testing.T) {
	const watchers, changes = 8, 2000
	m := New(Fanout(2))
	sinks := make([]ordered, watchers)
	var all, done sync.WaitGroup
	stop := make(chan struct{})
	for i := range sinks {
		w := m.NewWatcher(&sinks[i])
		mustAdd(t, m, w, "/a", Persistent)
		all.Go(func() {
			for {
				select {
				case <-stop:
					w.CatchUp()
					return
				default:
				}
				x := m.NewWatcher(discard{})
				mustAdd(t, m, x, "/a", Data, Child)
				w.CatchUp()
				m.Drop(x)
				x.CatchUp()
			}
		})
	}
	done.Go(func() {
		for i := range changes {
			ev := changed("/a")
			ev.Zxid = znode.Zxid(i + 1)
			m.Trigger(ev)
		}
		close(stop)
	})
	done.Wait()
	all.Wait()
	for i := range sinks {
		if sinks[i].wrong || sinks[i].count != changes {
			t.Errorf("watcher %d got %d events of %d, out of order: %v", i, sinks[i].count, changes, sinks[i].wrong)
		}
	}
	checkCounters(t, m)
}
