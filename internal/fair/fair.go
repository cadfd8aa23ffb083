// Package fair decides who is next where more is asked for than there is: clients in turn, however many connections
// each of them has, and the connections of a client in turn. Who has used least is first, so one that asks for little
// hardly waits (start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996).
//
// It knows no clients, no connections and no requests, and starts no goroutine.
package fair

import (
	"cmp"
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// Order is the queue of the members that wait for one thing. The zero value is empty. Callers lock.
type Order struct{ groups level[*Group] }

// Group is what the members of one client have in common in one Order. The zero value has used nothing.
type Group struct {
	place
	members level[*Member]
	held    bool
	Holds   Holding // what its members hold at present; kept by the owner of the Order
}

// Holding is a number of things, and their size in bytes.
type Holding struct{ Count, Bytes int }

// Member is what waits in an Order, such as a connection. It waits for one thing at a time.
type Member struct {
	place
	Size    int           // in bytes, of what it waits for; kept by the owner of the Order
	Waited  time.Duration // before it was granted last, or gave up; until the owner sets it back
	since   time.Time     // when it began to wait
	group   *Group
	granted chan struct{} // capacity 1; made when it waits for the first time
}

// Join makes m, which does not wait, a member of a Group.
func (m *Member) Join(g *Group) { m.group = g }

// Group returns the Group that m has joined; nil: none.
func (m *Member) Group() *Group { return m.group }

// Push has a member wait, which has no place in the Order. Wait on Granted once the Order is unlocked.
func (o *Order) Push(m *Member) {
	if m.granted == nil {
		m.granted = make(chan struct{}, 1)
	}
	m.since = time.Now()
	g := m.group
	g.members.push(m)
	if !g.held && !g.waits() {
		o.groups.push(g)
	}
}

// Granted gets a value when it is the member's turn.
func (m *Member) Granted() <-chan struct{} { return m.granted }

// Grant gives its turn to the member that Pop has returned.
func (m *Member) Grant() { m.granted <- struct{}{} }

// Pop removes and returns the member that is next; nil: none waits in a group that is not held.
func (o *Order) Pop() *Member {
	if len(o.groups.heap) == 0 {
		return nil
	}
	g := o.groups.heap[0]
	m := g.members.pop()
	m.Waited += time.Since(m.since)
	o.groups.pop()
	if len(g.members.heap) > 0 {
		o.groups.push(g) // behind those that have used as much
	}
	return m
}

// Remove has a member wait no longer. It reports false if Pop has returned it.
func (o *Order) Remove(m *Member) bool {
	if !m.waits() {
		return false
	}
	m.Waited += time.Since(m.since)
	g := m.group
	g.members.remove(m)
	if len(g.members.heap) == 0 && g.waits() {
		o.groups.remove(g)
	}
	return true
}

// Charge notes that a member has used something, in a unit that is the Order's own.
func (o *Order) Charge(m *Member, cost int64) {
	m.charge(cost)
	if m.waits() {
		m.group.members.fix(m)
	}
	g := m.group
	g.charge(cost)
	if g.waits() {
		o.groups.fix(g)
	}
}

// Hold has Pop leave a group out until Resume.
func (o *Order) Hold(g *Group) {
	g.held = true
	if g.waits() {
		o.groups.remove(g)
	}
}

// Resume undoes Hold.
func (o *Order) Resume(g *Group) {
	g.held = false
	if len(g.members.heap) > 0 && !g.waits() {
		o.groups.push(g)
	}
}

// place is the place of a group or a member in a level.
type place struct {
	used int64  // in all; ordered by what it will have used, if it uses as much as last time
	last int64  // of it, the last time
	turn uint64 // among those that will have used as much, the first comes first
	at   int    // its index in the heap, plus 1; 0: it does not wait
}

func (p *place) charge(cost int64) { p.used, p.last = p.used+cost, cost }

func (p *place) get() *place { return p }

func (p *place) waits() bool { return p.at > 0 }

// level is a heap of groups, or of the members of a group.
type level[T interface{ get() *place }] struct {
	heap []T
	used int64 // of the one that was popped last: one that comes back begins with it, and not with what it has saved
	turn uint64
}

func (l *level[T]) push(e T) {
	l.turn++
	p := e.get()
	p.used, p.turn = max(p.used, l.used), l.turn
	heap.Push(l, e)
}

func (l *level[T]) pop() T {
	e := heap.Pop(l).(T)
	l.used = max(l.used, e.get().used)
	return e
}

func (l *level[T]) remove(e T) { heap.Remove(l, e.get().at-1) }
func (l *level[T]) fix(e T)    { heap.Fix(l, e.get().at-1) }

// Len implements heap.Interface.
func (l *level[T]) Len() int { return len(l.heap) }

// Less implements heap.Interface.
func (l *level[T]) Less(i, j int) bool {
	a, b := l.heap[i].get(), l.heap[j].get()
	return cmp.Or(cmp.Compare(a.used+a.last, b.used+b.last), cmp.Compare(a.turn, b.turn)) < 0
}

// Swap implements heap.Interface.
func (l *level[T]) Swap(i, j int) {
	l.heap[i], l.heap[j] = l.heap[j], l.heap[i]
	l.heap[i].get().at, l.heap[j].get().at = i+1, j+1
}

// Push implements heap.Interface.
func (l *level[T]) Push(e any) {
	l.heap = append(l.heap, e.(T))
	e.(T).get().at = len(l.heap)
}

// Pop implements heap.Interface.
func (l *level[T]) Pop() any {
	n := len(l.heap) - 1
	e := l.heap[n]
	var none T
	l.heap[n] = none
	l.heap = l.heap[:n]
	e.get().at = 0
	return e
}

// Turns lets a number of members work at a time, and each of them for about Slice while others wait. Its methods may be
// called from several goroutines at once.
type Turns struct {
	free atomic.Int64 // turns that no one has; below zero, so many members wait or are about to

	mu     sync.Mutex // protects the fields below
	order  Order
	unused int // turns that were given back for members that are about to wait
}

// Slice is how long a member works while others wait, if it can stop.
const Slice = time.Millisecond

// NewTurns returns so many turns.
func NewTurns(n int) *Turns {
	t := new(Turns)
	t.free.Store(int64(n))
	return t
}

// Take waits for a turn.
func (t *Turns) Take(m *Member) {
	if t.free.Add(-1) >= 0 {
		return
	}
	t.mu.Lock()
	if t.unused > 0 {
		t.unused--
		t.mu.Unlock()
		return
	}
	t.order.Push(m)
	t.mu.Unlock()
	<-m.Granted()
}

// Give ends a turn of m, in which it has done so much work, such as requests. (Not so long: a member that the system
// has interrupted has done no more.) Work counts while others wait.
func (t *Turns) Give(m *Member, work int) {
	if t.free.Add(1) > 0 {
		return
	}
	t.mu.Lock()
	t.order.Charge(m, int64(work))
	next := t.order.Pop()
	if next == nil {
		t.unused++
	}
	t.mu.Unlock()
	if next != nil {
		next.Grant()
	}
}

// Waits reports whether a member waits.
func (t *Turns) Waits() bool { return t.free.Load() < 0 }
