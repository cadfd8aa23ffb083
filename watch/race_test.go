package watch

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

type counter struct{ n atomic.Int64 }

func (c *counter) Notify(*Notification) { c.n.Add(1) }

// TestManager_Concurrent_Connections lets connections come, watch, unwatch and
// go while one goroutine triggers and another reads the reports. The race
// detector looks for the rest; here the counters must come back to zero.
func TestManager_Concurrent_Connections(t *testing.T) {
	m := New()
	var conns, others sync.WaitGroup
	var stop atomic.Bool
	path := func(i int) string { return fmt.Sprintf("/p%d/n%d", i%3, i%7) }
	for c := range 8 {
		conns.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(c), 1))
			w := m.NewWatcher(&counter{})
			for range 3000 {
				p := path(rnd.IntN(21))
				switch rnd.IntN(8) {
				case 0:
					m.Remove(w, p, znode.WatcherAny)
				case 1:
					m.Contains(w, p, znode.WatcherData)
				case 2:
					m.Drop(w)
					w = m.NewWatcher(&counter{})
				default:
					if err := m.Add(w, p, Mode(1+rnd.IntN(4))); err != nil {
						t.Error(err)
					}
				}
			}
			m.Drop(w)
		})
	}
	others.Go(func() {
		for i := 0; !stop.Load(); i++ {
			m.Trigger(&znode.Event{Type: znode.EventType(1 + i%3), Path: path(i)})
		}
	})
	others.Go(func() {
		for !stop.Load() {
			m.Summary()
			m.ByPath(50)
			m.ByWatcher(50)
		}
	})
	conns.Wait()
	stop.Store(true)
	others.Wait()
	checkCounters(t, m)
	if got := m.Summary(); got != (Summary{}) || m.armed.Load() != 0 {
		t.Errorf("every connection has gone, yet %+v, armed %d", got, m.armed.Load())
	}
}

// TestManager_Concurrent_DropRacesTrigger drops connections while their
// watches fire, and expects no trace of them and no call after both are over.
func TestManager_Concurrent_DropRacesTrigger(t *testing.T) {
	m := New()
	for range 200 {
		sinks := make([]*counter, 4)
		ws := make([]*Watcher, len(sinks))
		for i := range ws {
			sinks[i] = &counter{}
			ws[i] = m.NewWatcher(sinks[i])
			mustAdd(t, m, ws[i], "/a", Data, Child, Persistent, Recursive)
		}
		var wg sync.WaitGroup
		for _, w := range ws {
			wg.Go(func() { m.Drop(w) })
		}
		m.Trigger(deleted("/a"))
		wg.Wait()
		before := sinks[0].n.Load()
		m.Trigger(deleted("/a"))
		if sinks[0].n.Load() != before {
			t.Fatal("a dropped watcher was notified by a later Trigger")
		}
		if m.armed.Load() != 0 {
			t.Fatalf("armed = %d after all were dropped", m.armed.Load())
		}
	}
	checkCounters(t, m)
}
