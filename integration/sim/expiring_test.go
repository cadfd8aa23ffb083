package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/znode"
)

// Below expiringPath are TTL znodes, /x/t-0000000001 and so on, which say in their data how long they
// live, and containers, /x/c0 and so on, whose children are ephemerals. No client deletes one of either
// kind.
const (
	expiringPath   = "/x"
	containerCount = 2
	reapInterval   = time.Second
	// reapSlack is by how much a znode may be overdue without a word: two sweeps.
	reapSlack = 2 * reapInterval
)

// ttlZnode is one that a client has made.
type ttlZnode struct {
	path string
	ttl  time.Duration
}

// perishable is a value that says how long its znode lives.
func (c *client) perishable(ttl time.Duration) string {
	return fmt.Sprintf("%s lives %v", c.value(), ttl)
}

func lifeOf(value string) (time.Duration, bool) {
	_, text, ok := strings.Cut(value, " lives ")
	ttl, err := time.ParseDuration(text)
	return ttl, ok && err == nil
}

// expire makes or touches what goes by itself.
func (c *client) expire(x *connection) ([]*call, bool) {
	switch n := c.rng.IntN(10); {
	case n < 3 && len(c.ttls) < 4:
		// The name has a number, so that package check knows it for one that goes without a client's doing.
		ttl := c.ms(1000, 5000).Round(time.Millisecond)
		o := check.Op{Kind: check.Create, Mode: znode.PersistentSequentialTTL, Path: expiringPath + "/t-", Value: c.perishable(ttl)}
		cmd := command(&o)
		cmd.Kind, cmd.TTL = znode.CreateTTL, ttl.Milliseconds()
		k, ok := x.send(o, cmd)
		return []*call{k}, ok
	case n < 7 && len(c.ttls) > 0:
		z := c.ttls[c.rng.IntN(len(c.ttls))]
		return c.one(x, check.Op{Kind: check.Set, Path: z.path, Value: c.perishable(z.ttl), Version: znode.AnyVersion})
	}
	container := fmt.Sprintf("%s/c%d", expiringPath, c.rng.IntN(containerCount))
	if c.rng.IntN(3) == 0 {
		// Package check would miss it; as a sync, the request takes its part in what is promised of order.
		k, ok := x.send(check.Op{Kind: check.Sync, Path: container}, &state.Command{
			Op: state.OpCreate, Kind: znode.CreateContainer, Mode: znode.Container, Path: container, ACL: znode.OpenACL,
		})
		return []*call{k}, ok
	}
	o := check.Op{Kind: check.Create, Mode: znode.Ephemeral, Value: c.value()}
	o.Path = container + "/" + o.Value
	return c.one(x, o)
}

// forgetTTL drops a znode that no longer exists.
func (c *client) forgetTTL(path string) {
	c.ttls = slices.DeleteFunc(c.ttls, func(z ttlZnode) bool { return z.path == path })
}

// expiring is what has happened below expiringPath, as the first server to apply it has told.
type expiring struct {
	mu      sync.Mutex // protects the fields below
	changes []expiringChange
	reaps   map[string]time.Duration // when a leader first asked for a znode's removal
}

// reaping notes that a leader asks for the removal of a znode.
func (e *expiring) reaping(path string, at time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.reaps[path]; ok {
		return
	}
	if e.reaps == nil {
		e.reaps = map[string]time.Duration{}
	}
	e.reaps[path] = at
}

type expiringChange struct {
	check.Change
	at time.Duration // when the first server applied it: not before it was decided
}

func (e *expiring) see(c check.Change, at time.Duration) {
	if !strings.HasPrefix(c.Path, expiringPath+"/") {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, known := range slices.Backward(e.changes) {
		if known.Zxid < c.Zxid {
			break
		}
		if known.Zxid == c.Zxid && known.Path == c.Path {
			return
		}
	}
	e.changes = append(e.changes, expiringChange{c, at})
}

// mortal is a TTL znode or a container that exists.
type mortal struct {
	ttl   time.Duration // 0: a container
	value string        // the last
	born  time.Duration
	since time.Duration // the last change of it, or of its children
	kids  int
	used  bool // it has had a child
}

// due is when it must have gone, and false if nothing lets it go.
func (m *mortal) due() (time.Duration, bool) {
	if m.ttl == 0 {
		return m.since, m.used && m.kids == 0
	}
	return m.since + m.ttl, true
}

// replay goes through what has happened. It shows each deletion of a TTL znode or a container, with
// what was known of it before, and returns those that are left.
func (e *expiring) replay(deleted func(c *expiringChange, m *mortal)) map[string]*mortal {
	e.mu.Lock()
	defer e.mu.Unlock()
	live := map[string]*mortal{}
	for i := range e.changes {
		c := &e.changes[i]
		parent := live[c.Path[:strings.LastIndexByte(c.Path, '/')]]
		if parent != nil {
			parent.since = c.at
			switch c.Type {
			case znode.EventCreated:
				parent.kids, parent.used = parent.kids+1, true
			case znode.EventDeleted:
				parent.kids--
			}
			continue
		}
		if c.Type == znode.EventDeleted {
			if m := live[c.Path]; m != nil {
				deleted(c, m)
			}
			delete(live, c.Path)
			continue
		}
		ttl, _ := lifeOf(c.Value)
		live[c.Path] = &mortal{ttl: ttl, value: c.Value, born: c.at, since: c.at}
	}
	return live
}

// reaped waits until no expired znode is left. Clients no longer write.
func (w *world) reaped() {
	ctx, cancel := context.WithTimeout(context.Background(), healLimit)
	defer cancel()
	for {
		overdue := ""
		for path, m := range w.expiring.replay(func(*expiringChange, *mortal) {}) {
			if at, ok := m.due(); ok && w.now() > at+reapSlack {
				overdue = fmt.Sprintf("%s, due at %v: %+v", path, at, *m)
			}
		}
		if overdue == "" {
			return
		}
		if wait(ctx, 100*time.Millisecond) != nil {
			w.record.violation("Expiring znodes", "at %v, %v after the end of all faults, there was still %s",
				w.now(), healLimit, overdue)
			return
		}
	}
}

// judgeExpiring checks that no TTL znode went before its time, counted from the moment in which its last
// change was asked for, and no container that had a child, or never had one. As in ZooKeeper, what a leader
// has asked for may come late, when a new container stands there: that one may go without ever having
// had a child.
//
// Guarantee: Expiring znodes.
func judgeExpiring(e *expiring, h *check.History) (list []check.Violation, gone int) {
	broken := func(format string, args ...any) {
		list = append(list, check.Violation{Guarantee: "Expiring znodes", What: fmt.Sprintf(format, args...)})
	}
	asked := map[string]time.Duration{}
	for i := range h.Ops {
		if o := &h.Ops[i]; o.Kind == check.Create || o.Kind == check.Set {
			asked[o.Value] = o.Call
		}
	}
	e.replay(func(c *expiringChange, m *mortal) {
		gone++
		switch {
		case m.ttl == 0 && m.kids > 0:
			broken("container %s was removed at %v with %d children", c.Path, c.at, m.kids)
		case m.ttl == 0 && !m.used:
			if asked, ok := e.reaps[c.Path]; !ok || asked > m.born {
				broken("container %s was removed at %v, and had never had a child", c.Path, c.at)
			}
		case c.at < asked[m.value]+m.ttl:
			broken("%s was removed at %v; it lives %v, and was last changed at %v or later", c.Path, c.at, m.ttl,
				asked[m.value])
		}
	})
	return list, gone
}
