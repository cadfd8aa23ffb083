package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// Barrier makes all callers of Wait wait from Set to Remove.
//
// It is Curator's DistributedBarrier: a persistent znode that exists while the
// barrier is set. It remains if the process that set it dies.
type Barrier struct {
	c    *client.Client
	path string
	acl  []client.ACL
}

// NewBarrier returns the barrier at path. Options: WithACL.
func NewBarrier(c *client.Client, path string, opts ...Option) *Barrier {
	return &Barrier{c: c, path: path, acl: newOptions(opts).acl}
}

// Set sets the barrier. It is not an error if the barrier is set already.
func (b *Barrier) Set(ctx context.Context) error {
	for {
		err := withParents(ctx, b.c, znode.Parent(b.path), b.acl, func() error {
			_, _, err := b.c.Create(ctx, b.path, nil, client.Persistent, b.acl...)
			return err
		})
		switch {
		case err == nil || errors.Is(err, client.ErrNodeExists):
			return nil
		case !errors.Is(err, client.ErrOutcomeUnknown) || ctx.Err() != nil:
			return err
		}
	}
}

// Remove removes the barrier and so releases all waiters. It is not an error if
// the barrier is not set.
func (b *Barrier) Remove(ctx context.Context) error { return remove(ctx, b.c, b.path) }

// Wait returns when the barrier is not set, or ctx ends. It sees every Set, by any
// client, that returned before.
func (b *Barrier) Wait(ctx context.Context) error {
	for {
		var w *client.Watch
		err := afterSync(ctx, b.c, b.path, func() (err error) {
			_, _, w, err = b.c.GetW(ctx, b.path)
			return err
		}, func() { w.Cancel() })
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		if err == nil {
			err = waitEvents(ctx, w)
		}
		if err != nil && !startAgain(ctx, b.c, err) {
			return err
		}
	}
}

// waitEvents waits until one of the watches fires, and cancels the others. The
// error is errPositionLost if they ended with their session.
func waitEvents(ctx context.Context, w *client.Watch, more ...*client.Watch) error {
	var other <-chan client.Event
	if len(more) > 0 {
		other = more[0].C() // there are two at most
	}
	defer func() {
		w.Cancel()
		for _, w := range more {
			w.Cancel()
		}
	}()
	var e client.Event
	var ok bool
	select {
	case e, ok = <-w.C():
	case e, ok = <-other:
	case <-ctx.Done():
		return contextError(ctx)
	}
	if !ok || e.Type == client.EventEnded {
		return errPositionLost
	}
	return nil
}

// The names of a double barrier's znodes: readyName is Curator's.
const (
	readyName  = "ready"
	memberName = "member-"
)

// DoubleBarrier lets a number of processes start together and end together: Enter
// waits until that many have entered, Leave until all have left. It can be
// reused.
//
// It is Curator's DistributedDoubleBarrier: an ephemeral znode for each process,
// and path/ready once there are enough. Unlike Curator, it does not confuse a
// process of the next round with one of the last, and removes a znode ready that a
// crash left: it is older than all members.
type DoubleBarrier struct {
	queue *waitQueue
	n     int
}

// NewDoubleBarrier returns the double barrier at path for n processes.
// Options: WithData, WithACL.
func NewDoubleBarrier(c *client.Client, path string, n int, opts ...Option) *DoubleBarrier {
	o := newOptions(opts)
	return &DoubleBarrier{
		queue: &waitQueue{c: c, dir: path, base: memberName, data: o.data, acl: o.acl}, n: n,
	}
}

// Entered is a process's place in a double barrier between Enter and Leave.
type Entered struct {
	b        *DoubleBarrier
	position *position
	round    client.Zxid            // at which ready was created
	known    map[string]client.Zxid // creation of each znode seen
}

// Enter waits until n processes have entered, or ctx ends. If the session is lost
// while waiting, it enters again in the next. If the barrier is open, it enters at
// once.
func (b *DoubleBarrier) Enter(ctx context.Context) (*Entered, error) {
	if b.n < 1 {
		return nil, fmt.Errorf("double barrier %s: for %d processes, want at least 1: %w", b.queue.dir, b.n,
			client.ErrBadArguments)
	}
	for {
		p, err := b.queue.join(ctx)
		if err == nil {
			in := &Entered{b: b, position: p, known: map[string]client.Zxid{p.name: p.token}}
			if err = in.enter(ctx); err == nil {
				return in, nil
			}
			p.quit(ctx)
		}
		if !startAgain(ctx, b.queue.c, err) {
			return nil, err
		}
	}
}

func (in *Entered) ready() string { return znode.Join(in.b.queue.dir, readyName) }

// enter is Enter once the znode exists.
func (in *Entered) enter(ctx context.Context) error {
	ctx, cancel := in.position.session.Context(ctx)
	defer cancel()
	for {
		open, err := in.tryEnter(ctx)
		if open || err != nil && !errors.Is(err, client.ErrOutcomeUnknown) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return contextError(ctx)
		}
	}
}

// tryEnter reads once and acts, or waits for a change.
func (in *Entered) tryEnter(ctx context.Context) (open bool, err error) {
	c := in.b.queue.c
	exists, stat, w, err := c.ExistsW(ctx, in.ready())
	if err != nil {
		return false, err
	}
	if exists && stat.Czxid > in.position.token {
		w.Cancel()
		in.round = stat.Czxid
		return true, nil
	}
	members, err := in.members(ctx)
	if err != nil {
		w.Cancel()
		return false, err
	}
	switch {
	case !slices.Contains(members, in.position.name):
		w.Cancel()
		return false, errPositionLost
	case exists:
		return in.enterLate(ctx, stat.Czxid, members, w)
	case len(members) < in.b.n:
		return false, waitEvents(ctx, w)
	}
	w.Cancel()
	_, _, err = c.Create(ctx, in.ready(), nil, client.Persistent, in.b.queue.acl...)
	if errors.Is(err, client.ErrNodeExists) {
		err = nil
	}
	return false, err
}

// enterLate is for a member that finds the barrier open. If any member is older than
// ready, the barrier is truly open. If not, a crash left ready, and the first of the
// members removes it: only one, so that no other removes the next ready.
func (in *Entered) enterLate(
	ctx context.Context, opened client.Zxid, members []string, w *client.Watch,
) (bool, error) {
	first := in.position.name
	for _, name := range members {
		czxid, exists, err := in.created(ctx, name)
		if err != nil {
			w.Cancel()
			return false, err
		}
		if exists && czxid < opened {
			w.Cancel()
			in.round = opened
			return true, nil
		}
		if exists && czxid < in.known[first] {
			first = name
		}
	}
	c := in.b.queue.c
	if first == in.position.name {
		w.Cancel()
		err := c.Delete(ctx, in.ready(), client.AnyVersion)
		if errors.Is(err, client.ErrNoNode) {
			err = nil
		}
		return false, err
	}
	_, _, gone, err := c.GetW(ctx, znode.Join(in.b.queue.dir, first))
	if err != nil {
		w.Cancel()
		if errors.Is(err, client.ErrNoNode) {
			err = nil
		}
		return false, err
	}
	return false, waitEvents(ctx, w, gone)
}

// members returns the names of the members that are inside or waiting, sorted
// as by Curator.
func (in *Entered) members(ctx context.Context) ([]string, error) {
	names, _, err := in.b.queue.c.Children(ctx, in.b.queue.dir)
	if errors.Is(err, client.ErrNoNode) {
		return nil, nil
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == readyName })
	slices.Sort(names)
	return names, err
}

// created returns when a member's znode was created. Names are not used twice.
func (in *Entered) created(ctx context.Context, name string) (client.Zxid, bool, error) {
	if czxid, ok := in.known[name]; ok {
		return czxid, true, nil
	}
	exists, stat, err := in.b.queue.c.Exists(ctx, znode.Join(in.b.queue.dir, name))
	if err != nil || !exists {
		return 0, false, err
	}
	in.known[name] = stat.Czxid
	return stat.Czxid, true, nil
}

// Leave waits until all that were inside together have left, or ctx ends. Then it
// may be called again. A member whose session is lost has left.
//
// The member whose name comes first stays to the end and waits for each of the others;
// those leave at once and wait for it.
func (in *Entered) Leave(ctx context.Context) error {
	for {
		gone, err := in.tryLeave(ctx)
		if gone {
			return nil
		}
		unknown := errors.Is(err, client.ErrOutcomeUnknown) && ctx.Err() == nil
		if err != nil && !unknown && !startAgain(ctx, in.b.queue.c, err) {
			return err
		}
	}
}

// tryLeave reads once, leaves if it is time, and waits for a change.
func (in *Entered) tryLeave(ctx context.Context) (gone bool, err error) {
	all, err := in.members(ctx)
	if err != nil {
		return false, err
	}
	var round []string // the members that were inside together with us
	for _, name := range all {
		czxid, exists, err := in.created(ctx, name)
		if err != nil {
			return false, err
		}
		if exists && (czxid < in.round || name == in.position.name) {
			round = append(round, name)
		}
	}
	mine := slices.Index(round, in.position.name)
	switch {
	case len(round) == 0:
		return true, nil
	case len(round) == 1 && mine == 0:
		err := in.leaveLast(ctx)
		return err == nil, err
	case mine == 0:
		return false, in.waitGone(ctx, round[len(round)-1])
	case mine > 0:
		if err := remove(ctx, in.b.queue.c, in.position.path); err != nil {
			return false, err
		}
	}
	return false, in.waitGone(ctx, round[0])
}

// leaveLast removes our znode together with ready, so that no client sees one without
// the other.
func (in *Entered) leaveLast(ctx context.Context) error {
	c := in.b.queue.c
	m := c.Multi()
	m.Delete(in.position.path, client.AnyVersion)
	m.Delete(in.ready(), client.AnyVersion)
	err := m.Commit(ctx)
	if errors.Is(err, client.ErrNoNode) {
		return remove(ctx, c, in.position.path) // ready no longer exists, or neither
	}
	return err
}

// waitGone waits for a change of a member's znode, unless it is gone.
func (in *Entered) waitGone(ctx context.Context, name string) error {
	_, _, w, err := in.b.queue.c.GetW(ctx, znode.Join(in.b.queue.dir, name))
	if errors.Is(err, client.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	return waitEvents(ctx, w)
}
