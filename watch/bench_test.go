package watch

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

type discard struct{}

func (discard) Notify(*Notification) {}

// BenchmarkTrigger_None is the price that every write pays: no watcher
// anywhere, and ten thousand watchers of other paths.
func BenchmarkTrigger_None(b *testing.B) {
	for _, n := range []int{0, 10_000, 1_000_000} {
		for _, ev := range []*znode.Event{changed("/app/config/a"), created("/app/config/a"),
			deleted("/app/config/a")} {
			b.Run(fmt.Sprintf("watches=%d/%s", n, ev.Type), func(b *testing.B) {
				m := New(Limit(2_000_000))
				w := m.NewWatcher(discard{})
				for i := range n {
					mustAdd(b, m, w, fmt.Sprintf("/other/node-%d", i), Data)
				}
				b.ReportAllocs()
				for b.Loop() {
					m.Trigger(ev)
				}
			})
		}
	}
}

// BenchmarkTrigger_Fanout wakes a thousand watchers of one znode: those that
// stay, and one-shot ones, which are armed again outside the timer.
func BenchmarkTrigger_Fanout(b *testing.B) {
	for _, mode := range []Mode{Persistent, Data} {
		b.Run(mode.String(), func(b *testing.B) {
			m := New()
			ws := make([]*Watcher, 1000)
			for i := range ws {
				ws[i] = m.NewWatcher(discard{})
				mustAdd(b, m, ws[i], "/app", mode)
			}
			b.ReportAllocs()
			for b.Loop() {
				m.Trigger(changed("/app"))
				if mode == Data {
					b.StopTimer()
					for _, w := range ws {
						mustAdd(b, m, w, "/app", Data)
					}
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkTrigger_Recursive changes a znode ten levels down with recursive
// watches elsewhere, on the root, and on every level.
func BenchmarkTrigger_Recursive(b *testing.B) {
	deep := strings.Repeat("/level", 10)
	levels := []string{"/"}
	for i := range 10 {
		levels = append(levels, strings.Repeat("/level", i+1))
	}
	for name, paths := range map[string][]string{
		"elsewhere": {"/other"}, "root": {"/"}, "every level": levels,
	} {
		b.Run(name, func(b *testing.B) {
			m := New()
			w := m.NewWatcher(discard{})
			for _, p := range paths {
				mustAdd(b, m, w, p, Recursive)
			}
			b.ReportAllocs()
			for b.Loop() {
				m.Trigger(changed(deep))
			}
		})
	}
}

// BenchmarkAdd_OneShot arms and fires, the life of a one-shot watch.
func BenchmarkAdd_OneShot(b *testing.B) {
	b.Run("add and fire", func(b *testing.B) {
		m := New()
		w := m.NewWatcher(discard{})
		b.ReportAllocs()
		for b.Loop() {
			mustAdd(b, m, w, "/app/config", Data)
			m.Trigger(changed("/app/config"))
		}
	})
	b.Run("add parallel", func(b *testing.B) {
		m := New()
		paths := make([]string, 1000)
		for i := range paths {
			paths[i] = fmt.Sprintf("/app/node-%d", i)
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			w := m.NewWatcher(discard{})
			for i := 0; pb.Next(); i++ {
				p := paths[i%len(paths)]
				if err := m.Add(w, p, Data); err != nil {
					b.Error(err)
				}
				m.Remove(w, p, znode.WatcherAny)
			}
		})
	})
}

// BenchmarkMemory_PerWatch reports the bytes of a one-shot watch beside its
// path's text: a thousand connections with a thousand paths each, all
// different, and the same thousand paths.
func BenchmarkMemory_PerWatch(b *testing.B) {
	const conns, each = 1000, 1000
	for _, same := range []bool{false, true} {
		b.Run(fmt.Sprintf("same=%v", same), func(b *testing.B) {
			paths := make([]string, conns*each)
			for i := range paths {
				paths[i] = fmt.Sprintf("/app/%07d", i)
			}
			for b.Loop() {
				before := heap()
				m := New()
				for c := range conns {
					w := m.NewWatcher(discard{})
					for i := range each {
						p := paths[i]
						if !same {
							p = paths[c*each+i]
						}
						mustAdd(b, m, w, p, Data)
					}
				}
				b.ReportMetric(float64(heap()-before)/(conns*each), "B/watch")
				runtime.KeepAlive(m)
			}
			runtime.KeepAlive(paths)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	return ms.HeapAlloc
}
