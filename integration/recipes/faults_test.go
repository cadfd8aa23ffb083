package recipes_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// fault is one kind of harm.
type fault struct {
	name   string
	weight int
	// do does the harm, waits for as long as it is to last, and undoes it.
	do func(f *faults)
}

// faults is the schedule. One harm is over before the next begins, except that
// clients may be cut off all the time.
type faults struct {
	s      *soak
	r      *rand.Rand
	counts map[string]int
	weak   int // the client that is cut off for longer, or -1
}

// The kinds, and how often each is drawn.
var kinds = []fault{
	{"kill a server", 6, func(f *faults) { f.kill(f.server()) }},
	{"kill the leader", 4, func(f *faults) { f.kill(f.leader()) }},
	{"kill all servers", 1, func(f *faults) {
		f.s.e.KillAll()
		f.wait(0, time.Second)
		f.s.e.StartAll()
	}},
	{"stop a server in good order", 1, func(f *faults) { s := f.server(); s.Stop(); s.Start() }},
	{"pause a server", 5, func(f *faults) { f.pause(3*time.Second, f.server()) }},
	{"pause the leader", 4, func(f *faults) { f.pause(3*time.Second, f.leader()) }},
	{"pause two servers", 2, func(f *faults) {
		f.pause(sessionTimeout, f.s.e.Server(1), f.s.e.Server(2+f.r.IntN(2)))
	}},
	{"pause all servers beyond the session timeout", 1, func(f *faults) {
		f.pause(2*sessionTimeout, f.s.e.Servers()...)
	}},
	{"cut all clients", 4, func(f *faults) {
		for _, w := range f.s.wires {
			w.cut()
		}
	}},
	{"cut a client off", 4, (*faults).toggleWeak},
}

// run injects faults until the time is over, and then undoes the last ones.
func (f *faults) run(length time.Duration) {
	end := time.Now().Add(length)
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for time.Now().Before(end) && !f.s.failed() {
		n := f.r.IntN(total)
		for _, k := range kinds {
			if n -= k.weight; n < 0 {
				f.counts[k.name]++
				k.do(f)
				break
			}
		}
		f.wait(50*time.Millisecond, 1200*time.Millisecond)
	}
	if f.weak >= 0 {
		f.toggleWeak()
	}
	f.s.e.StartAll()
	f.s.e.WaitServing()
}

// wait lets some time pass.
func (f *faults) wait(least, most time.Duration) {
	ctx, cancel := context.WithTimeout(f.s.ctx, least+time.Duration(f.r.Int64N(int64(most-least))))
	defer cancel()
	<-ctx.Done()
}

func (f *faults) server() *cluster.Server { return f.s.e.Server(1 + f.r.IntN(len(f.s.e.Servers()))) }

// leader is the server that leads, or one at random if there is none just now.
func (f *faults) leader() *cluster.Server {
	other := f.server() // drawn in any case, so that the schedule does not depend on it
	for _, s := range f.s.e.Running() {
		if mode, err := s.Mode(); err == nil && mode == cluster.ModeLeader {
			return s
		}
	}
	return other
}

func (f *faults) kill(s *cluster.Server) {
	s.Kill()
	f.wait(0, 1500*time.Millisecond)
	s.Start()
}

func (f *faults) pause(most time.Duration, servers ...*cluster.Server) {
	for _, s := range servers {
		s.Pause()
	}
	f.wait(100*time.Millisecond, most)
	for _, s := range servers {
		s.Resume()
	}
}

// toggleWeak cuts a client off until it is called again, some faults later: often
// for longer than its session lives.
func (f *faults) toggleWeak() {
	n := f.r.IntN(len(f.s.wires))
	if f.weak >= 0 {
		f.s.wires[f.weak].block(false)
		f.weak = -1
		return
	}
	f.weak = n
	f.s.wires[n].block(true)
}

func (f *faults) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		list = append(list, fmt.Sprintf("%d× %s", f.counts[name], name))
	}
	return strings.Join(list, ", ")
}
