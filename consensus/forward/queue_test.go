package forward

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fair"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// note is a Waiter that counts its calls.
type note struct {
	number        int
	applied, lost int
}

func (n *note) Applied(*state.Result) { n.applied++ }
func (n *note) Lost()                 { n.lost++ }

// A naive leader: it keeps the commands that it has applied, in order, and drops repeated ones and those out of order.
func TestQueue_Model_EveryCommandOnceInOrder(t *testing.T) {
	rng := seed.Rand(t)
	f := NewQueue(state.Origin{Server: 1, Incarnation: 1}, 1<<20, 1<<30)
	var notes []*note
	var want [][]byte    // all commands that were added
	var applied [][]byte // what the state machine has
	reported := 0        // applied[:reported] were brought to the forwarder
	base := uint64(0)    // commands that were applied in earlier incarnations
	receive := func(g state.Batch) {
		rest := g.Commands
		for seq := g.First; seq < g.First+uint64(g.Count); seq++ {
			i := int(base + seq - 1)
			size := len(want[i])
			if !bytes.Equal(rest[:size], want[i]) {
				t.Fatalf("number %d carries another command", seq)
			}
			rest = rest[size:]
			if i == len(applied) {
				applied = append(applied, want[i])
			}
		}
		if len(rest) > 0 {
			t.Fatalf("%d bytes behind %d commands", len(rest), g.Count)
		}
	}
	for range 20_000 {
		switch k := rng.IntN(100); {
		case k < 50:
			size := rng.IntN(300)
			if rng.IntN(200) == 0 {
				size = 100_000 // outgrows a chunk
			}
			c := &state.Command{Op: state.OpSetData, Path: fmt.Sprint("/", len(want)), Data: make([]byte, size)}
			n := &note{number: len(notes)}
			if err := f.Add(c, n, From{}); err != nil {
				t.Fatal(err)
			}
			notes, want = append(notes, n), append(want, state.AppendCommand(nil, c))
		case k < 70:
			receive(f.take(nil))
		case k < 75: // sent, and lost with the link
			f.take(nil)
			f.Rewind()
		case k < 76: // all that was not applied is in a new incarnation
			if reported == len(applied) {
				f.Renumber(f.Origin().Incarnation + 1)
				base = uint64(reported)
			}
		case k < 97:
			for ; reported < len(applied) && rng.IntN(4) > 0; reported++ {
				w, ok := f.Applied(uint64(reported) - base + 1)
				if !ok || w != Waiter(notes[reported]) {
					t.Fatalf("result %d found waiter %v, %v", reported, w, ok)
				}
				w.Applied(nil)
			}
			if _, ok := f.Applied(f.sent); ok {
				t.Fatal("a result of a command that was not sent found a waiter")
			}
		default: // a snapshot holds all that was applied
			for _, w := range f.SkipTo(uint64(len(applied)) - base) {
				w.Lost()
			}
			reported = len(applied)
		}
		if n := len(want) - reported; f.Len() != n {
			t.Fatalf("%d are pending, want %d", f.Len(), n)
		}
		inFlight := 0
		for _, p := range f.pending[f.head : f.head+int(f.next-f.first)] {
			inFlight += len(p.command)
		}
		if f.inFlight != inFlight {
			t.Fatalf("%d bytes are under way, want %d", f.inFlight, inFlight)
		}
	}
	// All that is under way is lost with the last link, and nothing more is added.
	for f.take(nil).Count > 0 {
		continue
	}
	f.Rewind()
	for g := f.take(nil); g.Count > 0; g = f.take(nil) {
		receive(g)
		for ; reported < len(applied); reported++ {
			if w, ok := f.Applied(uint64(reported) - base + 1); !ok {
				t.Fatalf("result %d found no waiter", reported)
			} else {
				w.Applied(nil)
			}
		}
	}
	if reported != len(notes) {
		t.Fatalf("%d of %d commands were applied", reported, len(notes))
	}
	for _, n := range notes {
		if sum := n.applied + n.lost; sum > 1 || sum == 1 != (n.number < reported) {
			t.Fatalf("command %d of %d: applied %d times, lost %d times", n.number, reported, n.applied, n.lost)
		}
	}
	t.Logf("%d commands", reported)
}

// A server must not keep completed commands, whether it waits for one command at a time or always has some pending.
func TestQueue_Applied_KeepsOnlyWhatIsPending(t *testing.T) {
	for _, backlog := range []int{0, 100, 10_000} {
		f := NewQueue(state.Origin{Server: 1, Incarnation: 1}, 1<<20, 1<<30)
		var notes []*note
		for seq := range 40_000 {
			for f.Len() <= backlog {
				notes = append(notes, &note{})
				if err := f.Add(create("/x"), notes[len(notes)-1], From{}); err != nil {
					t.Fatal(err)
				}
			}
			f.take(nil)
			if w, ok := f.Applied(uint64(seq) + 1); !ok || w != Waiter(notes[seq]) {
				t.Fatalf("backlog %d: result %d found the waiter %v, %v", backlog, seq+1, w, ok)
			}
		}
		if have, most := cap(f.pending), 3*(4096+backlog); have > most {
			t.Errorf("%d commands are pending, in room for %d, want %d at most", f.Len(), have, most)
		}
		for i, p := range f.pending[:cap(f.pending)] {
			if kept := i < f.head || i >= len(f.pending); kept && (p.command != nil || p.waiter != nil) {
				t.Fatalf("backlog %d: a command that is done is kept", backlog)
			}
		}
	}
}

// Goal: no more is sent than may be under way, and what waits for that goes out when results come.
func TestQueue_Take_BoundedByWhatIsUnderWay(t *testing.T) {
	f := NewQueue(state.Origin{Server: 1, Incarnation: 1}, 1<<20, 1<<30)
	const size = 100_000
	for range 4 * maxSentBytes / size {
		c := &state.Command{Op: state.OpSetData, Path: "/x", Data: make([]byte, size)}
		if err := f.Add(c, &note{}, From{}); err != nil {
			t.Fatal(err)
		}
	}
	signalled := func() bool {
		select {
		case <-f.wake:
			return true
		default:
			return false
		}
	}
	send := func() (sent int) {
		for signalled() {
			sent += len(f.take(nil).Commands)
		}
		return sent
	}
	if sent := send(); sent < maxSentBytes || sent > maxSentBytes+maxBatchBytes {
		t.Fatalf("%d bytes were sent, with room for %d", sent, maxSentBytes)
	}
	for done := uint64(0); f.Len() > 0; {
		before := f.inFlight
		for range 5 {
			if _, ok := f.Applied(done + 1); ok {
				done++
			}
		}
		if sent := send(); f.Len() > 0 && f.inFlight == 0 {
			t.Fatalf("nothing is under way of %d commands; before it were %d bytes, then %d were sent",
				f.Len(), before, sent)
		}
	}
	f.Rewind()
	if f.inFlight != 0 {
		t.Errorf("%d bytes are in flight on a new stream", f.inFlight)
	}
}

func TestQueue_Add_BoundedByCountAndBytes(t *testing.T) {
	for name, most := range map[string]fair.Holding{
		"count": {Count: 10, Bytes: 1 << 30},
		"bytes": {Count: 1 << 30, Bytes: 10 * len(state.AppendCommand(nil, create("/x")))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewQueue(state.Origin{Server: 1, Incarnation: 1}, most.Count, most.Bytes)
				for range 10 {
					if err := f.Add(create("/x"), &note{}, From{}); err != nil {
						t.Fatal(err)
					}
				}
				var errs [2]error
				over := make([]bool, 2)
				for i := range errs {
					go func() {
						errs[i] = f.Add(create("/x"), &note{}, From{})
						over[i] = true
					}()
					synctest.Wait()
				}
				if over[0] || over[1] || f.Len() != 10 {
					t.Fatalf("more than the bound was taken: %d are pending", f.Len())
				}
				// The ensemble's own do not wait, nor do the ends and returns of sessions; a client's request to reap does.
				for _, c := range []*state.Command{
					{Op: state.OpExpireSession, Session: 7}, {Op: state.OpMember}, {Op: state.OpReap, Path: "/x"},
					{Op: state.OpCloseSession, Session: 7}, {Op: state.OpAttach, Session: 7},
				} {
					if err := f.Add(c, &note{}, From{}); err != nil {
						t.Fatal(err)
					}
				}
				if isUrgent(&state.Command{Op: state.OpReap, Session: 7}) || isUrgent(create("/x")) {
					t.Error("a client's command counts as the ensemble's own")
				}
				f.take(nil)
				for seq := uint64(1); !over[0] && !over[1]; seq++ {
					if f.lenLocked() < f.maxCount && int(f.Bytes()) < f.maxBytes {
						t.Fatal("there is room, and a call waits")
					}
					if _, ok := f.Applied(seq); !ok {
						t.Fatal("a result found no waiter")
					}
					synctest.Wait()
				}
				if over[0] == over[1] {
					t.Errorf("there was room for one; waiting calls returned: %v", over)
				}
				f.Stop()
				synctest.Wait()
				if !over[0] || !over[1] {
					t.Error("a call waits although the server stops")
				}
				if err := errors.Join(errs[0], errs[1]); !errors.Is(err, ErrStopped) {
					t.Errorf("%v, want one ErrStopped", err)
				}
			})
		})
	}
}

// A client that asks for all there is gets its share, however many connections it has, and another finds room behind
// that. When all room is taken, the one that has had least is next.
func TestQueue_Add_EachClientHasItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, clients = 16, shareOfCount - 1
		q := NewQueue(state.Origin{Server: 1, Incarnation: 1}, most, 1<<30)
		add := func(g *fair.Group, done chan<- error) {
			m := new(fair.Member)
			m.Join(g)
			done <- q.Add(create("/x"), &note{}, From{Member: m, Patience: time.Minute})
		}
		greedy, done := make([]fair.Group, 5), make(chan error, 100)
		for i := range greedy[:clients] {
			for range most {
				go add(&greedy[i], done)
			}
			if synctest.Wait(); q.Len() != (i+1)*most/shareOfCount {
				t.Fatalf("%d clients that want all have %d of %d", i+1, q.Len(), most)
			}
		}
		for range most / shareOfCount { // the rest
			go add(&greedy[3], done)
		}
		synctest.Wait()
		modest := make(chan error, 1)
		go add(&greedy[4], modest)
		if synctest.Wait(); q.Len() != most || len(modest) > 0 {
			t.Fatalf("%d are pending, want all of %d", q.Len(), most)
		}
		q.take(nil)
		if _, ok := q.Applied(1); !ok {
			t.Fatal("a result found no waiter")
		}
		if synctest.Wait(); len(modest) != 1 || <-modest != nil {
			t.Error("room was free, and a client that had none of it did not get it")
		}
		clock.Sleep(time.Minute)
		synctest.Wait()
		overdue := 0
		for range len(done) {
			if errors.Is(<-done, ErrOverdue) {
				overdue++
			}
		}
		if waited := clients * (most - most/shareOfCount); overdue != waited {
			t.Errorf("%d were given up after their session's timeout, want the %d that have waited", overdue, waited)
		}
		if q.Len() != most || q.granted != (fair.Holding{}) {
			t.Errorf("%d are pending and %+v reserved, want %d and nothing", q.Len(), q.granted, most)
		}
	})
}
