package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/znode"
)

// The znodes that clients work on. Parents are made at the beginning and stay.
const (
	groupCount = 6 // of registers that multis tie together
	groupSize  = 3
	queueCount = 2
)

// parents are made before the clients begin.
func parents() []string {
	list := []string{"/e", "/lock"}
	for g := range groupCount {
		list = append(list, fmt.Sprintf("/r%d", g))
	}
	for q := range queueCount {
		list = append(list, fmt.Sprintf("/q%d", q))
	}
	return list
}

func (c *client) register(g int) string { return fmt.Sprintf("/r%d/k%d", g, c.rng.IntN(groupSize)) }

// version is the one last seen, mostly.
func (c *client) version(path string) znode.Version {
	v, ok := c.versions[path]
	if !ok || c.rng.IntN(3) == 0 {
		return znode.AnyVersion
	}
	return v
}

// request sends one request, or a sync with a read behind it.
func (c *client) request(x *connection) ([]*call, bool) {
	path := c.register(c.rng.IntN(groupCount))
	switch n := c.rng.IntN(100); {
	case n < 22:
		return c.one(x, check.Op{Kind: check.Set, Path: path, Value: c.value(), Version: c.version(path)})
	case n < 30:
		return c.one(x, check.Op{Kind: check.Create, Path: path, Value: c.value()})
	case n < 34:
		return c.one(x, check.Op{Kind: check.Delete, Path: path, Version: c.version(path)})
	case n < 40:
		return c.multi(x)
	case n < 43:
		return c.branch(x)
	case n < 54:
		return c.syncedRead(x, path)
	case n < 68:
		return c.one(x, check.Op{Kind: check.Get, Path: path, Watch: c.maybe(check.DataWatch)})
	case n < 73:
		return c.one(x, check.Op{Kind: check.Exists, Path: path, Watch: c.maybe(check.DataWatch)})
	case n < 78:
		all := parents()
		return c.one(x, check.Op{Kind: check.Children, Path: all[c.rng.IntN(len(all))], Watch: c.maybe(check.ChildWatch)})
	case n < 80:
		return c.addWatch(x)
	case n < 86:
		return c.one(x, check.Op{Kind: check.Create, Mode: znode.PersistentSequential,
			Path: fmt.Sprintf("/q%d/n-", c.rng.IntN(queueCount)), Value: c.value()})
	case n < 93:
		return c.ephemeral(x)
	default:
		return c.visit(x)
	}
}

func (c *client) maybe(w check.WatchMode) check.WatchMode {
	if c.rng.IntN(2) == 0 {
		return w
	}
	return check.NoWatch
}

// one sends one operation.
func (c *client) one(x *connection, o check.Op) ([]*call, bool) {
	var cmd *state.Command
	if !o.Kind.Read() {
		cmd = command(&o)
	}
	k, ok := x.send(o, cmd)
	return []*call{k}, ok
}

// command is what the log is asked for.
func command(o *check.Op) *state.Command {
	c := &state.Command{Path: o.Path, Data: []byte(o.Value), Version: o.Version}
	switch o.Kind {
	case check.Create:
		c.Op, c.Mode, c.ACL = state.OpCreate, o.Mode, znode.OpenACL
	case check.Delete:
		c.Op = state.OpDelete
	case check.Set:
		c.Op = state.OpSetData
	case check.Check:
		c.Op = state.OpCheck
	case check.Sync:
		c.Op = state.OpSync
	case check.Multi:
		c.Op = state.OpMulti
		for _, part := range slices.Concat(o.Ops, o.Else) {
			c.Ops = append(c.Ops, *command(&part))
		}
		if o.If != nil {
			c.Op, c.Branch = state.OpBranch, &state.Branch{Then: len(o.Ops)}
		}
		for i := range o.If {
			x := znode.Condition{Path: o.If[i].Path, Of: znode.OfVersion, Is: znode.Equal, Number: int64(o.If[i].Version)}
			if o.If[i].Version == znode.AnyVersion {
				x.Of, x.Number = znode.OfExistence, 1
			}
			c.Branch.If = append(c.Branch.If, x)
		}
	case check.Get: // of a branch
		c.Op = state.OpGet
	}
	return c
}

// branch sets registers of one group, and reads them, if others of it have not changed; otherwise it only reads.
func (c *client) branch(x *connection) ([]*call, bool) {
	g := c.rng.IntN(groupCount)
	o := check.Op{Kind: check.Multi}
	for range 1 + c.rng.IntN(2) {
		path := c.register(g)
		o.If = append(o.If, check.Op{Kind: check.Check, Path: path, Version: c.version(path)})
	}
	for _, k := range c.rng.Perm(groupSize)[:1+c.rng.IntN(2)] {
		set := check.Op{Kind: check.Set, Path: fmt.Sprintf("/r%d/k%d", g, k), Version: znode.AnyVersion, Value: c.value()}
		get := check.Op{Kind: check.Get, Path: c.register(g)}
		o.Ops, o.Else = append(o.Ops, set, get), append(o.Else, get)
	}
	return c.one(x, o)
}

// multi changes, creates, deletes or checks several registers of one group.
func (c *client) multi(x *connection) ([]*call, bool) {
	g := c.rng.IntN(groupCount)
	o := check.Op{Kind: check.Multi}
	for k := range groupSize {
		path := fmt.Sprintf("/r%d/k%d", g, k)
		part := check.Op{Kind: check.Set, Path: path, Version: c.version(path), Value: c.value()}
		switch c.rng.IntN(8) {
		case 0:
			part = check.Op{Kind: check.Create, Path: path, Value: c.value()}
		case 1:
			part = check.Op{Kind: check.Delete, Path: path, Version: c.version(path)}
		case 2, 3:
			part = check.Op{Kind: check.Check, Path: path, Version: c.version(path)}
		case 4:
			continue
		}
		o.Ops = append(o.Ops, part)
	}
	if len(o.Ops) == 0 {
		return nil, true
	}
	return c.one(x, o)
}

// syncedRead is linearizable: a sync, and a read right behind it.
func (c *client) syncedRead(x *connection, path string) ([]*call, bool) {
	first, ok := c.one(x, check.Op{Kind: check.Sync})
	if !ok {
		return first, false
	}
	kind := check.Get
	if c.rng.IntN(4) == 0 {
		kind = check.Exists
	}
	second, ok := c.one(x, check.Op{Kind: kind, Path: path, Synced: true, Call: first[0].op.Call})
	return append(first, second...), ok
}

// addWatch leaves a watch that stays. It is a read: what it shows is where the server stands.
func (c *client) addWatch(x *connection) ([]*call, bool) {
	o := check.Op{Kind: check.AddWatch, Path: parents()[c.rng.IntN(len(parents()))], Watch: check.Persistent}
	if c.rng.IntN(2) == 0 {
		o.Watch = check.Recursive
	}
	k, ok := x.send(o, nil)
	return []*call{k}, ok
}

// ephemeral creates one, or sometimes deletes one of its own.
func (c *client) ephemeral(x *connection) ([]*call, bool) {
	if len(c.mine) > 4 || len(c.mine) > 0 && c.rng.IntN(4) == 0 {
		i := c.rng.IntN(len(c.mine))
		path := c.mine[i]
		c.mine = slices.Delete(c.mine, i, i+1)
		return c.one(x, check.Op{Kind: check.Delete, Path: path, Version: znode.AnyVersion})
	}
	o := check.Op{Kind: check.Create, Mode: znode.Ephemeral, Value: c.value()}
	o.Path = "/e/" + o.Value
	if c.rng.IntN(2) == 0 {
		o.Mode, o.Path = znode.EphemeralSequential, "/e/s-"
	}
	return c.one(x, o)
}

// visit looks at an ephemeral of its own, or lists them all.
func (c *client) visit(x *connection) ([]*call, bool) {
	if len(c.mine) == 0 || c.rng.IntN(3) == 0 {
		return c.one(x, check.Op{Kind: check.Children, Path: "/e", Watch: c.maybe(check.ChildWatch)})
	}
	return c.one(x, check.Op{Kind: check.Exists, Path: c.mine[c.rng.IntN(len(c.mine))], Watch: c.maybe(check.DataWatch)})
}

// lock takes the one lock, as ZooKeeper's recipe does: the lowest of ephemeral sequential znodes has
// it. The token is the transaction that made the znode.
func (c *client) lock(x *connection) bool {
	asked := c.w.now()
	made, ok := c.one(x, check.Op{Kind: check.Create, Mode: znode.EphemeralSequential, Path: "/lock/n-", Value: c.value()})
	if !ok || !x.await(made...) {
		return false
	}
	if made[0].op.Outcome != check.OK {
		return false
	}
	own := made[0].op.Created
	released := false
	defer func() {
		if !released {
			c.mine = append(c.mine, own) // it will be deleted some time, if the session lives
		}
	}()
	for range 40 {
		list, ok := c.one(x, check.Op{Kind: check.Children, Path: "/lock"})
		if !ok || !x.await(list...) {
			return false
		}
		names := list[0].op.Names
		if len(names) > 0 && "/lock/"+slices.Min(names) == own {
			c.hold(x, asked, list[0].op.Return, made[0].op.Zxid)
			break
		}
		if !c.sleep(c.ms(10, 90)) {
			return false
		}
	}
	gone, ok := c.one(x, check.Op{Kind: check.Delete, Path: own, Version: znode.AnyVersion})
	released = ok && x.await(gone...)
	return released
}

// hold works under the lock. It believes to have it until it gives it back, or was last answered.
func (c *client) hold(x *connection, asked, from time.Duration, token znode.Zxid) {
	h := check.Hold{Lock: "/lock", Client: c.id, Token: uint64(token), Asked: asked, From: from, To: from}
	for range c.rng.IntN(4) {
		if !c.sleep(c.ms(1, 60)) {
			break
		}
		k, ok := c.one(x, check.Op{Kind: check.Sync})
		if !ok || !x.await(k...) {
			break
		}
		h.To = k[0].op.Call // it had the lock when it asked
	}
	c.w.record.hold(h)
}
