package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// Below rightsPath, clients with an even number are the owner, who may do everything; the others are
// strangers. What strangers may do with secretPath is nothing, ever; what they may do with the others,
// /acl/k0 and so on, the owner changes all the time.
const (
	rightsPath  = "/acl"
	secretPath  = "/acl/secret"
	rightsCount = 2
	// rightsLimit bounds porcupine's search for one znode, in real time.
	rightsLimit = 20 * time.Second
)

var (
	owner    = znode.ID{Scheme: "digest", ID: "owner:hash"}
	stranger = znode.ID{Scheme: "digest", ID: "stranger:hash"}
)

func (c *client) identities() []znode.ID {
	if c.id%2 == 0 {
		return []znode.ID{owner}
	}
	return []znode.ID{stranger}
}

// grant is an ACL under which strangers have these permissions. It names them: what anyone may do is found on
// another way (znode.Permits).
func grant(strangers znode.Perms) []znode.ACL {
	list := []znode.ACL{{Perms: znode.PermAll, ID: owner}}
	if strangers != 0 {
		list = append(list, znode.ACL{Perms: strangers, ID: stranger})
	}
	return list
}

// granted is the reverse.
func granted(list []znode.ACL) (strangers znode.Perms) {
	for _, a := range list {
		if a.ID == stranger {
			strangers |= a.Perms
		}
	}
	return strangers
}

// rights are the operations that have to do with permissions.
type rights struct {
	mu  sync.Mutex // protects the field below
	ops []*rightsOp
}

// rightsOp is one of them.
type rightsOp struct {
	op       *check.Op
	path     string
	needs    znode.Perms   // what a stranger needs for it; 0: it is the owner's, who changes or reads the ACL
	set      bool          // it sets the ACL
	perms    znode.Perms   // that it sets, or has read, for strangers
	aversion znode.Version // of a set: the one expected; of a read: the one seen
}

func (r *rights) add(o *rightsOp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, o)
}

// permission asks for one thing below rightsPath.
func (c *client) permission(x *connection) ([]*call, bool) {
	if c.rng.IntN(3) == 0 {
		return c.secret(x)
	}
	path := fmt.Sprintf("%s/k%d", rightsPath, c.rng.IntN(rightsCount))
	if c.id%2 == 0 {
		return c.own(x, path)
	}
	switch n := c.rng.IntN(10); {
	case n < 3:
		return c.try(x, path, znode.PermWrite, check.Op{Kind: check.Set, Path: path, Value: c.value(), Version: znode.AnyVersion})
	case n < 6:
		return c.try(x, path, znode.PermRead, check.Op{Kind: check.Get, Path: path})
	}
	first, ok := c.one(x, check.Op{Kind: check.Sync})
	if !ok {
		return first, false
	}
	second, ok := c.try(x, path, znode.PermRead, check.Op{Kind: check.Get, Path: path, Synced: true, Call: first[0].op.Call})
	return append(first, second...), ok
}

// try is something for which a stranger needs a permission.
func (c *client) try(x *connection, path string, needs znode.Perms, o check.Op) ([]*call, bool) {
	calls, ok := c.one(x, o)
	c.w.rights.add(&rightsOp{op: calls[0].op, path: path, needs: needs})
	return calls, ok
}

// own has the owner change an ACL, read it behind a sync, or write.
func (c *client) own(x *connection, path string) ([]*call, bool) {
	switch n := c.rng.IntN(10); {
	case n < 5:
		// package check knows no such kind. As a sync, the request takes its part in what is promised of
		// order, and nothing more.
		r := &rightsOp{path: path, set: true, aversion: znode.AnyVersion,
			perms: znode.Perms(c.rng.IntN(4)) & (znode.PermRead | znode.PermWrite)}
		if v, ok := c.versions["acl "+path]; ok && c.rng.IntN(3) > 0 {
			r.aversion = v
		}
		k, ok := x.send(check.Op{Kind: check.Sync, Path: path}, &state.Command{
			Op: state.OpSetACL, Path: path, ACL: grant(r.perms), Version: r.aversion,
		})
		r.op = k.op
		c.w.rights.add(r)
		return []*call{k}, ok
	case n < 8:
		first, ok := c.one(x, check.Op{Kind: check.Sync})
		if !ok {
			return first, false
		}
		r := &rightsOp{path: path}
		k := x.call(check.Op{Kind: check.Exists, Path: path, Synced: true, Call: first[0].op.Call})
		k.look = func(v *server.View) {
			list, stat, _ := v.Tree().ACLOf(path, x.sc.Identities())
			r.perms, r.aversion = granted(list), stat.Aversion
		}
		r.op = k.op
		c.w.rights.add(r)
		return []*call{first[0], k}, x.ask(k, nil)
	}
	return c.one(x, check.Op{Kind: check.Set, Path: path, Value: c.value(), Version: znode.AnyVersion})
}

// secret has the owner change what no stranger may know, and strangers try whatever there is.
func (c *client) secret(x *connection) ([]*call, bool) {
	set := check.Op{Kind: check.Set, Path: secretPath, Value: c.value(), Version: znode.AnyVersion}
	if c.id%2 == 0 {
		return c.one(x, set)
	}
	o, hook := set, func(*server.View) {}
	var cmd *state.Command
	switch c.rng.IntN(7) {
	case 0:
		o = check.Op{Kind: check.Get, Path: secretPath}
	case 1: // no permission is needed to set a watch, but to get its events
		o = check.Op{Kind: check.Exists, Path: secretPath}
		hook = func(v *server.View) {
			_ = v.Watches().Add(x.sc.Watcher(), secretPath, watch.Persistent)
		}
	case 2:
		o = check.Op{Kind: check.Children, Path: secretPath}
	case 3:
		o = check.Op{Kind: check.Create, Path: secretPath + "/child", Value: c.value()}
	case 4:
		o = check.Op{Kind: check.Delete, Path: secretPath, Version: znode.AnyVersion}
	case 5:
		fair := check.Op{Kind: check.Set, Path: c.register(0), Value: c.value(), Version: znode.AnyVersion}
		o = check.Op{Kind: check.Multi, Ops: []check.Op{fair, set}}
	case 6:
		o = check.Op{Kind: check.Sync, Path: secretPath}
		cmd = &state.Command{Op: state.OpSetACL, Path: secretPath, ACL: znode.OpenACL, Version: znode.AnyVersion}
	}
	if cmd == nil && !o.Kind.Read() {
		cmd = command(&o)
	}
	k := x.call(o)
	k.look = hook
	c.w.rights.add(&rightsOp{op: k.op, path: secretPath, needs: znode.PermAll})
	return []*call{k}, x.ask(k, cmd)
}

// eavesdrops reports whether an event tells a stranger what is not his business.
func (c *client) eavesdrops(path string) bool {
	return c.id%2 == 1 && strings.HasPrefix(path, secretPath)
}

// judgeRights checks who was let in: at secretPath never a stranger, by any server; elsewhere there is
// one order of the changes of an ACL, each conditional on the ACL's version, of what was read of it, and
// of strangers' attempts, in which each attempt succeeds exactly if it may; and a local read is let
// in exactly if the state that it shows permits it.
//
// Guarantee: Permissions.
func judgeRights(r *rights) (list []check.Violation) {
	broken := func(format string, args ...any) {
		list = append(list, check.Violation{Guarantee: "Permissions", What: fmt.Sprintf(format, args...)})
	}
	byPath := map[string][]*rightsOp{}
	for _, o := range r.ops {
		if o.path != secretPath {
			byPath[o.path] = append(byPath[o.path], o)
			continue
		}
		part := o.op.Kind == check.Multi && o.op.Code == znode.ErrNoNode // of the fair part of a multi
		if o.op.Outcome == check.OK || o.op.Outcome == check.Failed && o.op.Code != znode.ErrNoAuth && !part &&
			o.op.Code != znode.ErrSessionMoved && o.op.Code != znode.ErrSessionExpired {
			broken("a stranger was not refused: %+v", *o.op)
		}
	}
	for path, ops := range byPath {
		if porcupine.CheckOperationsTimeout(rightsModel(), rightsHistory(ops), rightsLimit) == porcupine.Illegal {
			broken("no order explains who was let in at %s: %s", path, dumpRights(ops))
		}
		if o, was := strayRead(ops); o != nil {
			broken("%+v: then strangers had the permissions %v", *o.op, was)
		}
	}
	return list
}

// access is the ACL of one znode in the model.
type access struct {
	aversion znode.Version
	perms    znode.Perms
}

func rightsModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return access{} },
		Step: func(was, input, _ any) (bool, any) {
			a, o := was.(access), input.(*rightsOp)
			switch {
			case o.set:
				fits := o.aversion == znode.AnyVersion || o.aversion == a.aversion
				next := access{a.aversion + 1, o.perms}
				switch {
				case o.op.Outcome == check.Failed:
					return !fits, a
				case !fits:
					return o.op.Outcome == check.Unknown, a
				}
				return o.op.Outcome == check.Unknown || o.op.Stat.Aversion == next.aversion, next
			case o.needs == 0:
				return a == access{o.aversion, o.perms}, a
			}
			return (o.op.Outcome == check.OK) == (a.perms&o.needs != 0), a
		},
	}
}

// rightsHistory leaves out what says nothing, or does not have to fit real time.
func rightsHistory(ops []*rightsOp) (list []porcupine.Operation) {
	for _, o := range ops {
		end, x := int64(o.op.Return), o.op
		switch {
		case x.Outcome == check.Unknown && !o.set, x.Kind.Read() && !x.Synced:
			continue
		case x.Outcome == check.Unknown:
			end = math.MaxInt64
		case x.Outcome == check.Failed && x.Code != znode.ErrNoAuth && x.Code != znode.ErrBadVersion:
			continue
		}
		list = append(list, porcupine.Operation{ClientId: x.Client, Input: o, Call: int64(x.Call), Return: end})
	}
	return list
}

// strayRead finds a local read that was let in, or not, other than the ACL says that the last change up
// to its zxid has left. Where a change in between was not answered, no client knows.
func strayRead(ops []*rightsOp) (*rightsOp, znode.Perms) {
	sets := slices.DeleteFunc(slices.Clone(ops), func(o *rightsOp) bool { return !o.set || o.op.Outcome != check.OK })
	slices.SortFunc(sets, func(a, b *rightsOp) int { return cmp.Compare(a.op.Zxid, b.op.Zxid) })
	for _, o := range ops {
		if o.needs != znode.PermRead || o.op.Outcome == check.Unknown ||
			o.op.Outcome == check.Failed && o.op.Code != znode.ErrNoAuth {
			continue
		}
		after, _ := slices.BinarySearchFunc(sets, o.op.Zxid+1, func(s *rightsOp, z znode.Zxid) int {
			return cmp.Compare(s.op.Zxid, z)
		})
		if after == len(sets) { // an unanswered one may have come behind the last
			continue
		}
		was := access{}
		if after > 0 {
			was = access{sets[after-1].op.Stat.Aversion, sets[after-1].perms}
		}
		known := sets[after].op.Stat.Aversion == was.aversion+1
		if known && (o.op.Outcome == check.OK) != (was.perms&znode.PermRead != 0) {
			return o, was.perms
		}
	}
	return nil, 0
}

func dumpRights(ops []*rightsOp) string {
	var b strings.Builder
	for _, o := range ops[max(0, len(ops)-40):] {
		fmt.Fprintf(&b, "\n  client %d %v..%v needs %v set %v perms %v aversion %d: outcome %d %s aversion %d",
			o.op.Client, o.op.Call, o.op.Return, o.needs, o.set, o.perms, o.aversion, o.op.Outcome,
			o.op.Code.Name(), o.op.Stat.Aversion)
	}
	return b.String()
}
