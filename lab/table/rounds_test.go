package table

import (
	"slices"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// What follows counts messages without the simulator and without the lab's algorithms:
// each is written down again, as the lectures tell it, on rounds of one message time.
// Where the two differ one of them is wrong.

// post is a message of the rounds; alarm a timer.
type post struct {
	at, from, to int
	kind         string
	id, run      int // what it carries
}

type alarm struct{ at, who, set int }

// rounds delivers what was sent in the round before, in the order of sending, and then
// lets the alarms of that time ring.
type rounds struct {
	now, last int
	posts     []post
	alarms    []alarm
	counts    map[string]int
	up        []bool
	crashes   map[int]int // processes that crash half a message time after a round
}

func newRounds(n int) *rounds {
	r := &rounds{counts: map[string]int{}, up: make([]bool, n)}
	for i := range r.up {
		r.up[i] = true
	}
	return r
}

func (r *rounds) send(p post) {
	p.at = r.now + 1
	r.counts[p.kind]++
	r.posts = append(r.posts, p)
}

func (r *rounds) run(hear func(post), ring func(alarm)) {
	for len(r.posts)+len(r.alarms) > 0 {
		next := 1 << 30
		for _, p := range r.posts {
			next = min(next, p.at)
		}
		for _, a := range r.alarms {
			next = min(next, a.at)
		}
		r.now = next
		for who, after := range r.crashes {
			if after < next {
				r.up[who] = false
			}
		}
		for len(r.posts) > 0 && r.posts[0].at == next { // sent in the order of time
			p := r.posts[0]
			r.posts = r.posts[1:]
			if r.up[p.to] {
				r.last = next
				hear(p)
			}
		}
		due := slices.DeleteFunc(slices.Clone(r.alarms), func(a alarm) bool { return a.at != next })
		r.alarms = slices.DeleteFunc(r.alarms, func(a alarm) bool { return a.at == next })
		for _, a := range due {
			if r.up[a.who] {
				ring(a)
			}
		}
	}
}

// bullyRounds is the bully of processes 0 to n-1, of which the last has failed if crashed.
type bullyRounds struct {
	*rounds
	once, askAll, tellAll bool
	crashed               bool
	stage                 []int // 0 idle, 1 has answered, 2 waits for answers, 3 waits for the coordinator
	leader, set           []int
}

func (b *bullyRounds) arm(i, after int) {
	b.set[i]++
	b.alarms = append(b.alarms, alarm{b.now + after, i, b.set[i]})
}

func (b *bullyRounds) elect(i int, knows bool) {
	n := len(b.up)
	if i == n-1 || i == n-2 && knows {
		b.declare(i)
		return
	}
	b.stage[i], b.leader[i] = 2, -1
	for j := range n {
		if j > i || j < i && b.askAll {
			b.send(post{from: i, to: j, kind: "election"})
		}
	}
	b.arm(i, 2)
}

func (b *bullyRounds) declare(i int) {
	b.stage[i], b.leader[i] = 0, i
	b.set[i]++
	for j := range b.up {
		if j < i || j > i && b.tellAll {
			b.send(post{from: i, to: j, kind: "coordinator"})
		}
	}
}

func (b *bullyRounds) hear(p post) {
	me := p.to
	switch {
	case p.kind == "election" && p.from > me:
	case p.kind == "election":
		b.send(post{from: me, to: p.from, kind: "answer"})
		if b.stage[me] == 0 && !(b.once && b.leader[me] == me) {
			b.stage[me] = 1
			b.arm(me, 1)
		}
	case p.kind == "answer":
		if b.stage[me] == 2 {
			b.stage[me] = 3
			b.arm(me, 5)
		}
	case p.from < me: // a lower one announces itself
		if b.stage[me] == 0 && !(b.once && b.leader[me] == me) {
			b.stage[me] = 1
			b.arm(me, 1)
		}
	case p.from >= b.leader[me]:
		b.stage[me], b.leader[me] = 0, p.from
		b.set[me]++
	}
}

// start runs it from some initiators, who know of the crash.
func (b *bullyRounds) start(initiators []int) {
	n := len(b.up)
	b.up[n-1] = !b.crashed
	knows := make([]bool, n)
	for _, i := range initiators {
		knows[i] = b.crashed
		b.elect(i, knows[i])
	}
	b.run(b.hear, func(a alarm) {
		if a.set != b.set[a.who] {
			return
		}
		if b.stage[a.who] == 2 {
			b.declare(a.who)
		} else {
			b.elect(a.who, knows[a.who])
		}
	})
}

func newBullyRounds(n int) *bullyRounds {
	b := &bullyRounds{rounds: newRounds(n), stage: make([]int, n), leader: make([]int, n), set: make([]int, n)}
	for i := range b.leader {
		b.leader[i] = -1
	}
	return b
}

// ringRounds runs the ring of some ids by one of the two rules, and returns the counts and
// the time.
func ringRounds(ids []sim.ID, initiators []int, participants bool) (map[string]int, int) {
	n := len(ids)
	r := newRounds(n)
	takesPart, done, seen := make([]bool, n), make([]bool, n), make([]int, n)
	pass := func(i int, p post) {
		p.from, p.to = i, (i+1)%n
		r.send(p)
	}
	for i := range seen {
		seen[i] = -1
	}
	for _, i := range initiators {
		takesPart[i], seen[i] = true, int(ids[i])
		pass(i, post{kind: "election", id: int(ids[i]), run: int(ids[i])})
	}
	r.run(func(p post) {
		me, mine := p.to, int(ids[p.to])
		if !participants {
			if p.run < seen[me] {
				return // of a lower initiator
			}
			if p.run > seen[me] {
				seen[me], takesPart[me], done[me] = p.run, false, false
			}
		}
		switch {
		case p.kind == "elected":
			if p.id != mine {
				takesPart[me] = false
				pass(me, p)
			}
		case p.id == mine:
			takesPart[me], done[me] = false, true
			pass(me, post{kind: "elected", id: mine, run: p.run})
		case p.id > mine:
			takesPart[me] = true
			pass(me, p)
		case !takesPart[me]:
			takesPart[me] = true
			p.id = mine
			pass(me, p)
		}
	}, nil)
	return r.counts, r.last
}

// lcrHops counts how far the ids go: each until it meets a larger one.
func lcrHops(ids []sim.ID) (hops int) {
	for i := range ids {
		for d := 1; ; d++ {
			hops++
			if next := ids[(i+d)%len(ids)]; next >= ids[i] {
				break
			}
		}
	}
	return hops
}

// hsHops sends every probe of every phase, hop by hop.
func hsHops(ids []sim.ID) (hops int) {
	n := len(ids)
	phase := make([]int, n) // -1: out
	for {
		won := false
		for i := range ids {
			if phase[i] < 0 {
				continue // lost a phase: when the winner comes home all others have
			}
			replies, home := 0, false
			for _, step := range []int{1, n - 1} {
				at := i
				for hop := 1; ; hop++ {
					at = (at + step) % n
					hops++
					if at == i {
						home = true
						break
					}
					if ids[at] > ids[i] {
						break
					}
					if hop == 1<<phase[i] {
						hops += hop // the reply
						replies++
						break
					}
				}
			}
			switch {
			case home:
				return hops + n // it tells the ring
			case replies == 2:
				phase[i]++
				won = true
			default:
				phase[i] = -1
			}
		}
		if !won {
			panic("nobody wins")
		}
	}
}
