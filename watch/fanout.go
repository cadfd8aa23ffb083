package watch

import (
	"slices"
	"sync"
	"sync/atomic"
)

// The bounds of what Trigger leaves to others. A path with fewer than DefaultFanout watchers is not worth it. Beyond
// maxBehind watchers, or maxFanouts paths, which each reply has to look at, Trigger waits.
const (
	DefaultFanout = 64
	maxBehind     = 1 << 21
	maxFanouts    = 64
)

// Fanout has Trigger return before the watchers of a path that has at least so many are notified: a goroutine does it,
// in the same order. Watcher.CatchUp waits for those of one watcher. 0 or less means DefaultFanout.
func Fanout(least int) Option {
	return func(m *Manager) {
		if m.fanout = least; least <= 0 {
			m.fanout = DefaultFanout
		}
	}
}

// fanout is a notification on its way to the many watchers of one path. It never changes.
type fanout struct {
	note    *Notification
	start   uint64 // the number before the notification's first
	number  uint64 // its own
	table   modes  // which of the members are concerned
	members set[*Watcher, modes]
	fired   *entry // which had these watchers, and is no longer in the table; nil: they go on watching
}

// to notifies w, whose modes are k, unless that has been done, and completes what take began.
func (f *fanout) to(w *Watcher, k modes) {
	if k&f.table == 0 {
		return
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	if w.mark >= f.number {
		return
	}
	told := w.mark > f.start
	w.mark = f.number
	if f.fired != nil {
		w.countData(-k.in(dataTable))
		w.forget(f.fired)
	}
	if !told {
		w.sink.Notify(f.note)
	}
}

// notify passes on the notification of these numbers unless w has got it through another table or ancestor.
func (w *Watcher) notify(n *Notification, start, number uint64) {
	w.CatchUp()
	w.telling.Lock()
	defer w.telling.Unlock()
	told := w.mark > start
	if w.mark = number; !told {
		w.sink.Notify(n)
	}
}

// CatchUp returns when the watcher has been notified of all that Trigger was called with before: a server calls it
// before it makes a reply that may show a change. A Notify must not.
func (w *Watcher) CatchUp() {
	for _, f := range w.owner.backlog.fanouts() {
		f.to(w, f.members.get(w))
	}
}

// backlog is the fanouts that are not finished, in their order.
type backlog struct {
	list atomic.Pointer[[]*fanout] // the oldest first; nil: none. Changes under mu, what it points to does not

	mu      sync.Mutex // protects the fields below
	room    sync.Cond  // on mu: behind has become less
	behind  int        // watchers of all of them
	running bool       // a goroutine works them off
}

func (b *backlog) fanouts() []*fanout {
	if list := b.list.Load(); list != nil {
		return *list
	}
	return nil
}

// add waits for room. A single fanout may be larger than the bound: its watchers are in memory as it is.
func (b *backlog) add(f *fanout) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.fanouts()) >= maxFanouts || b.behind > 0 && b.behind+f.members.n > maxBehind {
		b.room.Wait()
	}
	list := append(slices.Clip(b.fanouts()), f)
	b.list.Store(&list)
	b.behind += f.members.n
	if !b.running {
		b.running = true
		go b.run()
	}
}

// run works off all fanouts.
func (b *backlog) run() {
	for {
		f := b.fanouts()[0]
		for w, k := range f.members.all() {
			f.to(w, k)
		}
		if !b.finish(f) {
			return
		}
	}
}

// finish removes the first fanout, and reports whether there are others.
func (b *backlog) finish(first *fanout) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behind -= first.members.n
	b.room.Broadcast()
	rest := slices.Clone(b.fanouts()[1:]) // which does not keep the first in memory
	b.list.Store(&rest)
	b.running = len(rest) > 0
	return b.running
}

// takeLocked makes a fanout of an entry's watchers, for the current notification, and removes the modes in consumed
// from them: in one step if that are all that they have. The shard is locked.
func (m *Manager) takeLocked(s *shard, e *entry, table, consumed modes) {
	g := e.group
	f := &fanout{table: table, members: g.members}
	m.trigger.fanouts = append(m.trigger.fanouts, f)
	if g.only(consumed) {
		s.paths.remove(e)
		s.dataPairs -= int64(g.data)
		s.pairs -= int64(g.data + g.child)
		if g.data > 0 {
			s.dataPaths--
		}
		m.armed.Add(-int64(g.members.n))
		f.fired, e.group = e, nil
		return
	}
	g.lent = true
	for w, k := range f.members.all() {
		if k&consumed != 0 {
			m.removeLocked(s, e, w, consumed)
		}
	}
}

// leave adds the fanouts of the current notification to the backlog.
func (t *trigger) leave(n *Notification, b *backlog) {
	start := t.number
	for i, f := range t.fanouts {
		t.number++
		f.note, f.start, f.number = n, start, t.number
		b.add(f)
		t.fanouts[i] = nil
	}
	t.fanouts = t.fanouts[:0]
}
