package table

// maekawaRounds has two processes ask at 0, of which one ranks first, stay for one round and leave. It returns
// the counts and the time at which all is over. A process asks itself without a message.
func maekawaRounds(n int, askers [2]int, first int) (map[string]int, int) {
	r := newRounds(n)
	given, waits := make([]int, n), make([]int, n) // of each voter: whom its vote is with, who waits for it
	for i := range n {
		given[i], waits[i] = -1, -1
	}
	votes, failed, inside, inquiries := map[int]int{}, map[int]bool{}, map[int]bool{}, map[int][]int{}
	var hear func(post)
	tell := func(from, to int, kind string, about int) {
		p := post{from: from, to: to, kind: kind, id: about}
		if from == to {
			hear(p)
		} else {
			r.send(p)
		}
	}
	tellSet := func(i int, kind string) {
		for _, j := range crossingOf(n, i) {
			tell(i, j, kind, i)
		}
	}
	voter := func(p post) {
		me := p.to
		switch {
		case p.kind != "request": // the vote is back, and with a relinquish its asker waits
			given[me], waits[me] = waits[me], -1
			if p.kind == "relinquish" {
				waits[me] = p.id
			}
			if given[me] >= 0 {
				tell(me, given[me], "vote", given[me])
			}
		case given[me] < 0:
			given[me] = p.id
			tell(me, p.id, "vote", p.id)
		case p.id == first:
			waits[me] = p.id
			tell(me, given[me], "inquire", given[me])
		default:
			waits[me] = p.id
			tell(me, p.id, "fail", p.id)
		}
	}
	hear = func(p post) {
		me := p.to
		switch p.kind {
		case "vote":
			if votes[me]++; votes[me] == len(crossingOf(n, me)) {
				inside[me] = true
				r.alarms = append(r.alarms, alarm{at: r.now + 1, who: me})
			}
		case "fail":
			failed[me] = true
		case "inquire":
			inquiries[me] = append(inquiries[me], p.from)
		default:
			voter(p)
			return
		}
		if failed[me] && !inside[me] {
			asked := inquiries[me]
			inquiries[me] = nil
			for _, j := range asked {
				votes[me]--
				tell(me, j, "relinquish", me)
			}
		}
	}
	for _, i := range askers {
		tellSet(i, "request")
	}
	r.run(hear, func(a alarm) {
		r.last = max(r.last, r.now)
		tellSet(a.who, "release")
	})
	return r.counts, r.last
}

// repairRounds is the ring of processes 0 to n-1, started by the first, in which each watches the would-be leader
// one place on (watch 1) or back (-1), and the highest crashes half a round after a round.
func repairRounds(n, watch, after int) (map[string]int, int) {
	r := newRounds(n)
	r.crashes = map[int]int{n - 1: after}
	inRun, leader, joined, alarmed := make([]int, n), make([]int, n), make([]bool, n), make([]bool, n)
	set := make([][2]int, n) // timers that count: for the elected message, for the answer; 0 none
	enter := func(i, run int) {
		inRun[i], leader[i], joined[i], alarmed[i], set[i] = run, -1, false, false, [2]int{}
	}
	watched := func(i int) int { return (i + watch + n) % n }
	pass := func(i int, p post) {
		p.from, p.to = i, (i+1)%n
		if !r.up[p.to] {
			p.to = (p.to + 1) % n
		}
		joined[i] = true
		r.send(p)
	}
	arm := func(i, which, wait int) {
		set[i][which] = r.now + wait
		r.alarms = append(r.alarms, alarm{at: r.now + wait, who: i, set: which})
	}
	begin := func(i int) {
		enter(i, (r.now+1)*n+i) // a later run is the larger, and of one moment that of the higher initiator
		pass(i, post{kind: "election", id: i, run: inRun[i]})
	}
	for i := range n {
		enter(i, 0)
	}
	election := func(me int, p post) {
		switch {
		case p.id == me:
			if leader[me] != me {
				leader[me] = me
				pass(me, post{kind: "elected", id: me, run: p.run})
			}
			return
		case p.id < me && joined[me]:
			return
		}
		p.id = max(p.id, me)
		if p.id == watched(me) && !alarmed[me] {
			alarmed[me] = true
			arm(me, 0, 2*n+2) // twice round and two to spare
		}
		pass(me, p)
	}
	begin(0)
	r.run(func(p post) {
		me := p.to
		switch {
		case p.kind == "check":
			r.send(post{from: me, to: p.from, kind: "alive"})
			return
		case p.kind == "alive":
			set[me][1] = 0
			return
		case p.run < inRun[me]:
			return
		case p.run > inRun[me]:
			enter(me, p.run)
		}
		switch {
		case p.kind == "election":
			election(me, p)
		case p.id != me && leader[me] != p.id:
			leader[me], set[me][0] = p.id, 0
			pass(me, p)
			if p.id == watched(me) {
				r.send(post{from: me, to: p.id, kind: "check"})
				arm(me, 1, 2)
			}
		}
	}, func(a alarm) {
		if set[a.who][a.set] == r.now && (leader[a.who] < 0 || a.set == 1) {
			begin(a.who)
		}
	})
	return r.counts, r.last
}

// takeoverRounds begins when the session of the first in line ends, at some time. All others watch it, or each the
// one before it.
func takeoverRounds(n, expiry int, herd bool) (map[string]int, int) {
	r := newRounds(n + 1) // the service is the last
	r.alarms = []alarm{{at: expiry, who: n}}
	r.run(func(p post) {
		switch me := p.to; {
		case me == n:
			r.send(post{from: n, to: p.from, kind: p.kind + "-reply"})
		case p.kind == "event":
			r.send(post{from: me, to: n, kind: "children"})
		case p.kind == "children-reply" && me > 1: // the second is the first now
			r.send(post{from: me, to: n, kind: "exists"})
		}
	}, func(alarm) {
		for i := 1; i < n && (herd || i == 1); i++ {
			r.send(post{from: n, to: i, kind: "event"})
		}
	})
	return r.counts, r.last
}

// drawnRounds has each process poll the next-higher one, wait five rounds after an answer and poll again. The highest
// crashes half a round after a round; all ends when who polled it leads and who polls that one knows.
func drawnRounds(n, after int) (map[string]int, int) {
	r := newRounds(n)
	r.crashes = map[int]int{n - 1: after}
	answered, leads, over := make([]int, n), n-1, false
	const poll, check = 0, 1
	for i := range n - 1 {
		r.alarms = append(r.alarms, alarm{who: i, set: poll})
	}
	r.run(func(p post) {
		if p.kind == "check" {
			r.send(post{from: p.to, to: p.from, kind: "alive"})
			return
		}
		answered[p.to] = r.now
		r.alarms = append(r.alarms, alarm{at: r.now + 5, who: p.to, set: poll})
		over = over || leads == n-2 && p.from == leads
	}, func(a alarm) {
		switch {
		case over || a.set == check && answered[a.who] == r.now:
		case a.set == check:
			leads, over = a.who, n == 2
			r.last = r.now
		case a.who != leads:
			r.send(post{from: a.who, to: a.who + 1, kind: "check"})
			r.alarms = append(r.alarms, alarm{at: r.now + 2, who: a.who, set: check})
		}
	})
	return r.counts, r.last
}

// beats has all of n processes send heartbeats each period until a time; the last one crashes half a round after a
// round, or never if that is negative. It returns their number, and when the others suspect the last, or 0.
func beats(n, period, timeout, after, until int) (sent, suspected int) {
	heard := 0 // of the last one
	for now := 0; now <= until; now++ {
		if now > 0 && (now-1)%period == 0 && (after < 0 || now-1 <= after) {
			heard = now
		}
		if now%period == 0 {
			sent += (n - 1) * (n - 1)
			if after < 0 || now <= after {
				sent += n - 1
			}
		}
		if now == heard+period+timeout {
			return sent, now
		}
	}
	return sent, 0
}
