package watch

import (
	"fmt"
	"math"
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
// watches elsewhere, few and many, on the root, and on every level.
func BenchmarkTrigger_Recursive(b *testing.B) {
	deep := strings.Repeat("/level", 10)
	levels, elsewhere := []string{"/"}, make([]string, 100_000)
	for i := range elsewhere {
		elsewhere[i] = fmt.Sprint(strings.Repeat("/other", 1+i%10), i) // at every depth
	}
	for i := range 10 {
		levels = append(levels, strings.Repeat("/level", i+1))
	}
	for name, paths := range map[string][]string{
		"elsewhere": {"/other"}, "100,000 elsewhere": elsewhere, "root": {"/"}, "every level": levels,
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

// shape is how watches are spread over watchers and paths.
type shape struct {
	name            string
	watchers, paths int
	each            int // watchers of each path
}

// shapes are those of n watches: of one watcher, of many with the same paths, of few on each path, and of one path.
func shapes(n int) []shape {
	side := int(math.Sqrt(float64(n)))
	return []shape{{"one watcher", 1, n, 1}, {"same paths", side, side, side},
		{"2 of each", side, n / 2, 2}, {"10 of each", side, n / 10, 10}, {"one path", n, 1, n}}
}

// fill sets the watches of the shape and returns the bytes that live because of them: without the texts of the
// paths, of which each Add has a copy of its own, as from a request, and without the watchers.
func (sh shape) fill(tb testing.TB, mode Mode) (m *Manager, ws []*Watcher, bytes int64) {
	m = New(Limit(math.MaxInt), Bytes(math.MaxInt64))
	ws = make([]*Watcher, sh.watchers)
	for i := range ws {
		ws[i] = m.NewWatcher(discard{})
	}
	before := heap()
	for i := range sh.paths {
		path := pathOf(i)
		for j := range sh.each {
			mustAdd(tb, m, ws[(i*sh.each+j)%sh.watchers], strings.Clone(path), mode)
		}
	}
	return m, ws, heap() - before - int64(textBytes*sh.paths)
}

func pathOf(i int) string { return fmt.Sprintf("/app/%07d-0123456789abcdef", i) }

const textBytes = 32 // for the 29 of a pathOf

// BenchmarkDrop ends connections with 100,000 watches, and reports a watch's share.
func BenchmarkDrop(b *testing.B) {
	sh := shape{"", 1, 100_000, 1}
	for b.Loop() {
		b.StopTimer()
		m, ws, _ := sh.fill(b, Data)
		b.StartTimer()
		m.Drop(ws[0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*sh.paths), "ns/watch")
}

// BenchmarkTrigger_Million fires a million one-shot watches: by one change, and by one each. It is the applier's part.
func BenchmarkTrigger_Million(b *testing.B) {
	for _, sh := range []shape{{"one path", 1_000_000, 1, 1_000_000}, {"a path each", 1000, 1_000_000, 1}} {
		b.Run(sh.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				m, _, _ := sh.fill(b, Data)
				m.fanout = DefaultFanout // as a server's
				events := make([]*znode.Event, sh.paths)
				for i := range events {
					events[i] = changed(pathOf(i))
				}
				b.StartTimer()
				for _, ev := range events {
					m.Trigger(ev)
				}
				if n := m.armed.Load(); n != 0 {
					b.Fatalf("%d watches are left", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1_000_000, "ns/watch")
		})
	}
}

// BenchmarkMemory_PerWatch reports the most bytes of a watch beside its path's text, of a million watches and of the
// numbers around it: tables grow by doubling.
func BenchmarkMemory_PerWatch(b *testing.B) {
	for i, sh := range shapes(1_000_000) {
		for _, mode := range []Mode{Data, Persistent} {
			b.Run(sh.name+"/"+mode.String(), func(b *testing.B) {
				for b.Loop() {
					least, most := perWatch(b, i, mode, 700_000)
					b.ReportMetric(least, "min-B/watch")
					b.ReportMetric(most, "max-B/watch")
				}
			})
		}
	}
}

// perWatch measures a shape at numbers of watches from n to twice that.
func perWatch(tb testing.TB, i int, mode Mode, n int) (least, most float64) {
	for end := 2 * n; n < end; n += n / 7 {
		sh := shapes(n)[i]
		m, ws, bytes := sh.fill(tb, mode)
		runtime.KeepAlive(m)
		runtime.KeepAlive(ws)
		each := float64(bytes) / float64(sh.paths*sh.each)
		if most = max(most, each); least == 0 || each < least {
			least = each
		}
	}
	return least, most
}

func heap() int64 {
	runtime.GC()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	return int64(ms.HeapAlloc)
}
