package session

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// start is any moment; the property test starts elsewhere each time.
var start = time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)

func TestClock_Expire_AtTheTickAfterTheTimeout(t *testing.T) {
	c := NewClock(time.Second)
	c.Track(1, 2*time.Second, start)                     // due at 3 s: 2 s is not "after"
	c.Track(2, 2500*time.Millisecond, start)             // due at 3 s
	c.Track(3, 2*time.Second, start.Add(time.Second+1))  // due at 4 s
	c.Track(4, 40*time.Second, start.Add(3*time.Second)) // due at 44 s
	if next, ok := c.Next(); !ok || !next.Equal(start.Add(3*time.Second)) {
		t.Errorf("Next() = %v, %v", next, ok)
	}
	steps := []struct {
		after time.Duration
		want  []znode.SessionID
		left  int
	}{
		{3*time.Second - 1, nil, 4},
		{3 * time.Second, []znode.SessionID{1, 2}, 2},
		{3 * time.Second, nil, 2},
		{100 * time.Second, []znode.SessionID{3, 4}, 0},
	}
	for _, s := range steps {
		if got := idsOf(c.Expire(start.Add(s.after))); !slices.Equal(got, s.want) || c.Len() != s.left {
			t.Errorf("after %v: %v, %d left; want %v, %d", s.after, got, c.Len(), s.want, s.left)
		}
	}
	if next, ok := c.Next(); ok {
		t.Errorf("Next() of an empty clock = %v", next)
	}
}

func TestClock_Touch_Postpones(t *testing.T) {
	c := NewClock(time.Second)
	c.Track(1, 4*time.Second, start)
	if !c.Touch(1, start.Add(3*time.Second), 1) {
		t.Error("Touch of a session in the clock = false")
	}
	if !c.Touch(1, start.Add(time.Second), 1) { // late news of an earlier heartbeat
		t.Error("late Touch = false")
	}
	if got := idsOf(c.Expire(start.Add(8*time.Second - 1))); got != nil {
		t.Errorf("expired %v before 8 s", got)
	}
	if got := idsOf(c.Expire(start.Add(8 * time.Second))); !slices.Equal(got, []znode.SessionID{1}) {
		t.Errorf("expired %v at 8 s", got)
	}
	if c.Touch(1, start.Add(9*time.Second), 1) {
		t.Error("Touch of an expired session = true")
	}
}

func TestClock_Track_AgainChangesTheTimeout(t *testing.T) {
	c := NewClock(time.Second)
	c.Track(1, 40*time.Second, start)
	c.Track(1, 4*time.Second, start)
	if next, _ := c.Next(); !next.Equal(start.Add(5*time.Second)) || c.Len() != 1 {
		t.Errorf("Next() = %v, Len() = %d", next.Sub(start), c.Len())
	}
	c.Remove(1)
	c.Remove(1)
	if _, ok := c.Next(); ok || c.Len() != 0 {
		t.Error("Remove left the session")
	}
}

// TestClock_Track_BeforeTheFirstMoment: the caller's moments may come out of
// order, so ticks before the first one must round the same way.
func TestClock_Track_BeforeTheFirstMoment(t *testing.T) {
	c := NewClock(time.Second)
	c.Track(1, time.Second, start)
	c.Track(2, time.Second, start.Add(-2500*time.Millisecond)) // silent since, due at -1 s
	if next, _ := c.Next(); !next.Equal(start.Add(-time.Second)) {
		t.Errorf("Next() = %v after the first moment, want -1s", next.Sub(start))
	}
	exact := NewClock(time.Second)
	exact.Track(1, time.Second, start)
	exact.Track(2, time.Second, start.Add(-2*time.Second)) // silent for the timeout at -1 s, for longer at 0
	if next, _ := exact.Next(); !next.Equal(start) {
		t.Errorf("Next() = %v after the first moment, want 0", next.Sub(start))
	}
	if got := idsOf(c.Expire(start)); !slices.Equal(got, []znode.SessionID{2}) {
		t.Errorf("expired %v", got)
	}
}

func TestNewClock_RefusesNoTick(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("NewClock(0) did not panic")
		}
	}()
	NewClock(0)
}

// TestClock_Property_NeverEarlyNeverLate runs sessions with random timeouts and
// heartbeats against a list of last touches. At every tick exactly those may
// come out whose timeout has passed; none may stay longer than timeout+tick.
func TestClock_Property_NeverEarlyNeverLate(t *testing.T) {
	rnd := seed.Rand(t)
	for round := range 50 {
		tick := time.Duration(1+rnd.IntN(3000)) * time.Millisecond
		t.Logf("round %d, tick %v", round, tick)
		type life struct {
			timeout time.Duration
			last    time.Time
		}
		alive := map[znode.SessionID]*life{}
		now := start.Add(time.Duration(rnd.Int64N(int64(time.Hour))))
		c := NewClock(tick)
		for range 2000 {
			next, ok := c.Next()
			step := now.Add(time.Duration(rnd.Int64N(int64(tick))))
			if ok && !next.After(step) {
				now = next
				for _, id := range idsOf(c.Expire(now)) {
					l := alive[id]
					if l == nil || now.Sub(l.last) <= l.timeout || now.Sub(l.last) > l.timeout+tick {
						t.Fatalf("session %s expired: %+v, now %v", id, l, now)
					}
					delete(alive, id)
				}
			} else {
				now = step
			}
			for id, l := range alive {
				if now.Sub(l.last) > l.timeout+tick {
					t.Fatalf("session %s is late by %v", id, now.Sub(l.last)-l.timeout-tick)
				}
			}
			id := znode.SessionID(rnd.IntN(30) - 15)
			switch rnd.IntN(6) {
			case 0:
				l := &life{time.Duration(rnd.Int64N(int64(20 * tick))), now}
				c.Track(id, l.timeout, now)
				alive[id] = l
			case 1:
				c.Remove(id)
				delete(alive, id)
			default:
				if c.Touch(id, now, 1) != (alive[id] != nil) {
					t.Fatalf("Touch(%s) disagrees with the list", id)
				}
				if l := alive[id]; l != nil {
					l.last = now
				}
			}
			if c.Len() != len(alive) {
				t.Fatalf("Len() = %d, the list has %d", c.Len(), len(alive))
			}
		}
		if len(c.buckets) != len(c.order) || len(c.buckets) > 23 {
			t.Errorf("%d buckets, %d in order; at most one for each tick of the longest timeout",
				len(c.buckets), len(c.order))
		}
	}
}

// BenchmarkClock has 100,000 sessions: a heartbeat within the tick, a
// heartbeat that moves the session, and a whole tick in which every session
// beats once and the clock looks for the dead.
func BenchmarkClock(b *testing.B) {
	const n = 100_000
	tick := 2 * time.Second
	fill := func() *Clock {
		c := NewClock(tick)
		for i := range n {
			c.Track(znode.SessionID(i), time.Duration(4+i%36)*time.Second, start)
		}
		return c
	}
	b.Run(fmt.Sprintf("touch same bucket/n=%d", n), func(b *testing.B) {
		c, i := fill(), 0
		b.ReportAllocs()
		for b.Loop() {
			c.Touch(znode.SessionID(i%n), start, 1)
			i++
		}
	})
	b.Run(fmt.Sprintf("touch next bucket/n=%d", n), func(b *testing.B) {
		c, i := fill(), 0
		b.ReportAllocs()
		for b.Loop() {
			if i%n == 0 {
				idsOf(c.Expire(start.Add(time.Duration(i/n) * tick)))
			}
			c.Touch(znode.SessionID(i%n), start.Add(time.Duration(1+i/n)*tick), 1)
			i++
		}
	})
	b.Run(fmt.Sprintf("expire all/n=%d", n), func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			c := fill()
			b.StartTimer()
			if dead := idsOf(c.Expire(start.Add(time.Hour))); len(dead) != n {
				b.Fatalf("%d sessions expired, want all %d", len(dead), n)
			}
		}
	})
}

func TestClock_Delay_PostponesAll(t *testing.T) {
	c := NewClock(time.Second)
	c.Delay(time.Hour) // nothing there to postpone
	c.Track(1, 2*time.Second, start)
	c.Delay(-time.Second) // never earlier
	c.Delay(10 * time.Second)
	c.Track(2, 2*time.Second, start.Add(10*time.Second)) // a full timeout, not more
	if got := idsOf(c.Expire(start.Add(13*time.Second - 1))); got != nil {
		t.Errorf("expired %v before 13 s", got)
	}
	c.Touch(2, start.Add(11*time.Second), 1)
	if got := idsOf(c.Expire(start.Add(13 * time.Second))); !slices.Equal(got, []znode.SessionID{1}) {
		t.Errorf("expired %v at 13 s, want 1", got)
	}
	if got := idsOf(c.Expire(start.Add(14 * time.Second))); !slices.Equal(got, []znode.SessionID{2}) {
		t.Errorf("expired %v at 14 s, want 2", got)
	}
}

func idsOf(dead []Silent) (ids []znode.SessionID) {
	for _, s := range dead {
		ids = append(ids, s.ID)
	}
	return ids
}

// An expired session has the time and the server of its last heartbeat, even if older ones are reported
// later.
func TestClock_Expire_SaysWhoHeardLast(t *testing.T) {
	c := NewClock(time.Second)
	c.Track(1, 2*time.Second, start)
	c.Track(2, 2*time.Second, start)
	c.Touch(1, start.Add(time.Second), 7)
	c.Touch(1, start.Add(time.Millisecond), 8)
	got := c.Expire(start.Add(time.Hour))
	want := []Silent{{2, start, NotHeard}, {1, start.Add(time.Second), 7}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestClock_Deadlines_ListsWhatExpires(t *testing.T) {
	c := NewClock(time.Second)
	now := time.Unix(1000, 0)
	list := func() map[time.Time][]znode.SessionID {
		all := map[time.Time][]znode.SessionID{}
		c.Deadlines(func(at time.Time, ids []znode.SessionID) {
			slices.Sort(ids)
			all[at] = ids
		})
		return all
	}
	if got := list(); len(got) != 0 {
		t.Errorf("an empty clock: %v", got)
	}
	c.Track(1, 2*time.Second, now)
	c.Track(2, 2*time.Second, now)
	c.Track(3, 4*time.Second, now)
	c.Track(4, 9*time.Second, now)
	c.Remove(4) // its bucket stays, empty
	got := list()
	if len(got) != 2 {
		t.Errorf("%d deadlines, want 2: %v", len(got), got)
	}
	moments := slices.SortedFunc(maps.Keys(got), time.Time.Compare)
	for _, at := range moments { // the clock itself agrees
		if early := idsOf(c.Expire(at.Add(-time.Millisecond))); len(early) != 0 {
			t.Errorf("%v expire before %v", early, at)
		}
		ids := idsOf(c.Expire(at))
		if slices.Sort(ids); !slices.Equal(ids, got[at]) {
			t.Errorf("at %v expire %v, not %v", at, ids, got[at])
		}
	}
}

// A Tracker knows sessions only while its server leads, and gives all of them a full timeout when it begins to.
func TestTracker_Lead(t *testing.T) {
	tracker, table := NewTracker(time.Second), NewTable()
	table.Add(Session{ID: 1, Timeout: 2 * time.Second})
	expect := func(when string, at time.Time, wantTerm uint64, want ...znode.SessionID) {
		t.Helper()
		silent, term := tracker.Expire(at)
		if got := idsOf(silent); !slices.Equal(got, want) || term != wantTerm {
			t.Errorf("%s: %v expire in term %d; want %v in %d", when, got, term, want, wantTerm)
		}
	}
	tracker.Track(table.Get(1), start)
	tracker.Touch(7, []znode.SessionID{1}, start)
	if tracker.Leads() || tracker.Delay(time.Second) || len(tracker.Deadlines()) != 0 {
		t.Error("a Tracker leads before Lead")
	}
	expect("before it leads", start.Add(time.Hour), 0)

	tracker.Lead(5, table, start)
	if got := tracker.Deadlines(); !tracker.Leads() || len(got) != 1 {
		t.Errorf("leads %v, deadlines %v; want true and one", tracker.Leads(), got)
	}
	expect("before its timeout", start.Add(2*time.Second), 5)
	if !tracker.Delay(time.Minute) {
		t.Error("Delay = false, want true")
	}
	expect("before the delayed deadline", start.Add(time.Minute+2*time.Second), 5)
	expect("at the delayed deadline", start.Add(time.Minute+3*time.Second), 5, 1)

	tracker.Track(table.Get(1), start)
	tracker.Remove(1)
	expect("after Remove", start.Add(time.Hour), 5)
	tracker.Lead(0, nil, start)
	expect("after it has led", start.Add(time.Hour), 0)
}
