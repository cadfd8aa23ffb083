package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// chaos is who lets one thing at a time happen, with chance of its own.
type chaos struct {
	*world
	rng *rand.Rand
}

// ms is a random time.
func (w *chaos) ms(least, spread int) time.Duration {
	return time.Duration(least+w.rng.IntN(spread)) * time.Millisecond
}

// anyone is a server; every second time the leader, if there is one.
func (w *chaos) anyone() int {
	if i := w.leader(); i >= 0 && w.rng.IntN(2) == 0 {
		return i
	}
	return w.rng.IntN(len(w.servers))
}

// mishap is one thing that can happen. It takes as long as it lasts.
type mishap struct {
	name string
	odds int
	run  func(w *chaos)
}

func mishaps() []mishap {
	return []mishap{
		{"process killed", 4, func(w *chaos) { w.crash(false, w.anyone()) }},
		{"power cut", 4, func(w *chaos) {
			i := w.anyone()
			w.dawdle(i)
			w.crash(true, i)
		}},
		{"majority killed", 1, func(w *chaos) { w.crash(false, w.some(len(w.servers)/2+1)...) }},
		{"power cut everywhere", 2, func(w *chaos) {
			all := w.some(len(w.servers))
			w.dawdle(all...)
			w.crash(true, all...)
		}},
		{"stopped and started", 2, func(w *chaos) {
			m := w.servers[w.anyone()]
			m.busy <- struct{}{}
			m.stop()
			clock.Sleep(w.ms(0, 1500))
			w.boot(m)
			<-m.busy
		}},
		{"isolated", 4, (*chaos).isolate},
		{"one-way partition", 4, (*chaos).oneWay},
		{"split", 3, (*chaos).split},
		{"bridge", 2, (*chaos).bridge},
		{"clients cut off", 2, func(w *chaos) {
			i := w.anyone()
			w.clientsCut[i].Store(true)
			clock.Sleep(w.ms(500, 6000))
			w.clientsCut[i].Store(false)
		}},
		{"connections reset", 5, func(w *chaos) {
			i := w.anyone()
			for range 1 + w.rng.IntN(4) {
				w.net.reset(func(from, to int) bool { return from == i || to == i })
				clock.Sleep(w.ms(0, 100))
			}
		}},
		{"connections stalled", 5, func(w *chaos) {
			i := w.anyone()
			w.net.stall(func(from, to int) bool { return from == i || to == i }, w.ms(50, 2500))
			clock.Sleep(w.ms(0, 1500))
		}},
		{"slow network", 4, (*chaos).slowNetwork},
		{"slow disk", 4, func(w *chaos) {
			i := w.anyone()
			w.servers[i].disk.setSlow(w.ms(20, 800))
			clock.Sleep(w.ms(500, 4000))
			w.servers[i].disk.setSlow(0)
		}},
		{"disk hangs", 1, func(w *chaos) {
			i := w.anyone()
			w.servers[i].disk.freeze.close()
			clock.Sleep(w.ms(3000, 8000))
			w.servers[i].disk.freeze.open()
		}},
		{"pause", 4, func(w *chaos) {
			m := w.servers[w.anyone()]
			resume := m.pause()
			clock.Sleep(w.ms(100, 5000))
			resume()
		}},
		{"server replaced", 2, (*chaos).replace},
		{"leadership moved", 3, func(w *chaos) {
			if l := w.servers[w.anyone()].running(); l != nil {
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				_ = l.node.Ensemble().TransferTo(ctx, state.ServerID(w.rng.IntN(len(w.servers))))
			}
		}},
	}
}

// dawdle makes disks slow for a moment, every second time, so that much is written and not yet synced
// when the power goes.
func (w *chaos) dawdle(servers ...int) {
	if w.rng.IntN(2) == 0 {
		return
	}
	for _, i := range servers {
		w.servers[i].disk.setSlow(400 * time.Millisecond)
	}
	clock.Sleep(w.ms(200, 800))
}

// some are k servers.
func (w *chaos) some(k int) []int { return w.rng.Perm(len(w.servers))[:k] }

// crash ends servers at one instant; they come back in any order, each in its time.
func (w *chaos) crash(power bool, victims ...int) {
	var all sync.WaitGroup
	for _, i := range victims {
		m, down := w.servers[i], w.ms(0, 300)
		if w.rng.IntN(2) == 0 {
			down += w.ms(0, 5000)
		}
		all.Go(func() {
			m.busy <- struct{}{}
			m.crash(power)
			clock.Sleep(down)
			w.boot(m)
			<-m.busy
		})
	}
	all.Wait()
}

func (w *world) boot(m *machine) {
	if err := m.boot(); err != nil {
		w.record.violation("Damage", "at %v: %v", w.now(), err)
	}
}

// cut blocks directed links until the time is over.
func (w *chaos) cut(d time.Duration, cut func(from, to int) bool) {
	w.net.change(func() {
		for i := range w.servers {
			for j := range w.servers {
				if i != j && cut(i, j) {
					w.net.blocked[[2]int{i, j}]++
				}
			}
		}
	})
	clock.Sleep(d)
	w.net.change(func() {
		for i := range w.servers {
			for j := range w.servers {
				if i != j && cut(i, j) {
					w.net.blocked[[2]int{i, j}]--
				}
			}
		}
	})
}

func (w *chaos) isolate() {
	i := w.anyone()
	w.cut(w.ms(300, 6000), func(from, to int) bool { return from == i || to == i })
}

// oneWay lets a server hear but not speak, or speak but not hear, to all or to one.
func (w *chaos) oneWay() {
	i, other := w.anyone(), w.rng.IntN(len(w.servers))
	deaf, all := w.rng.IntN(2) == 0, w.rng.IntN(2) == 0
	w.cut(w.ms(300, 6000), func(from, to int) bool {
		if deaf {
			from, to = to, from
		}
		return from == i && (all || to == other)
	})
}

// split makes two sides.
func (w *chaos) split() {
	side := map[int]bool{}
	for _, i := range w.some(1 + w.rng.IntN(len(w.servers)-1)) {
		side[i] = true
	}
	w.cut(w.ms(300, 6000), func(from, to int) bool { return side[from] != side[to] })
}

// bridge leaves one server that reaches all, while the others reach only it.
func (w *chaos) bridge() {
	i := w.anyone()
	w.cut(w.ms(300, 6000), func(from, to int) bool { return from != i && to != i })
}

func (w *chaos) slowNetwork() {
	extra, i, all := w.ms(1, 400), w.anyone(), w.rng.IntN(2) == 0
	w.net.change(func() {
		for a := range w.servers {
			for b := range w.servers {
				if all || a == i || b == i {
					w.net.delay[[2]int{a, b}] = extra
				}
			}
		}
	})
	clock.Sleep(w.ms(500, 4000))
	w.net.change(func() { clear(w.net.delay) })
}

// harass lets faults happen until the time is over: one after the other, and now and then a second one
// while the first lasts.
func (w *world) harass(d time.Duration) {
	end := time.Now().Add(d)
	var all sync.WaitGroup
	for time.Now().Before(end) {
		first := &chaos{w, rand.New(rand.NewPCG(w.rng.Uint64(), 1))}
		clock.Sleep(first.ms(100, 1500))
		if w.rng.IntN(4) == 0 {
			second := &chaos{w, rand.New(rand.NewPCG(w.rng.Uint64(), 2))}
			kind := w.choose()
			all.Go(func() {
				clock.Sleep(second.ms(0, 500))
				kind.run(second)
			})
		}
		w.choose().run(first)
	}
	all.Wait()
}

// choose picks a mishap, and counts it.
func (w *world) choose() mishap {
	list := mishaps()
	sum := 0
	for _, f := range list {
		sum += f.odds
	}
	n := w.rng.IntN(sum)
	for _, f := range list {
		if n -= f.odds; n < 0 {
			w.counts[f.name]++
			w.logger.Debug("FAULT", "kind", f.name, "at", w.now())
			return f
		}
	}
	panic("unreachable: the odds add up")
}

// heal ends all faults; every server runs.
func (w *world) heal() {
	w.net.change(func() {
		clear(w.net.blocked)
		clear(w.net.delay)
	})
	for i, m := range w.servers {
		w.clientsCut[i].Store(false)
		m.disk.setSlow(0)
		m.busy <- struct{}{} // one that has ended itself is being started
		if m.running() == nil {
			w.boot(m)
		}
		<-m.busy
	}
}
