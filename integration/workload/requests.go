package workload

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// burst sends a few requests at once and waits for their answers.
func (k *worker) burst() {
	var batch []*asked
	for range 1 + k.rng.IntN(maxBurst) {
		batch = append(batch, k.request()...)
	}
	k.wait(batch)
}

// register is one of the present slot's registers. Multis tie them together in pairs.
func (k *worker) register(of int) string {
	slot := int(k.w.rec.since(time.Now()) / slotLength)
	return fmt.Sprintf("%s/reg/%d-%d", k.w.root, slot, of)
}

func (k *worker) request() []*asked {
	n := k.rng.IntN(registers)
	path := k.register(n)
	switch r := k.rng.IntN(100); {
	case r < 12:
		return []*asked{k.create(path, znode.Persistent)}
	case r < 20:
		return []*asked{k.set(path, znode.AnyVersion)}
	case r < 32:
		return []*asked{k.set(path, k.seen[path])}
	case r < 37:
		return []*asked{k.remove(path, znode.AnyVersion)}
	case r < 40:
		return []*asked{k.remove(path, k.seen[path])}
	case r < 50:
		return []*asked{k.multi(n)}
	case r < 62:
		return k.synced(path)
	case r < 72:
		return []*asked{k.get(path, check.NoWatch)}
	case r < 79:
		return []*asked{k.get(path, check.DataWatch)}
	case r < 83:
		return []*asked{k.exists(path, check.DataWatch)}
	case r < 87:
		return []*asked{k.children(k.w.root+"/eph", check.ChildWatch)}
	case r < 90:
		return []*asked{k.children(k.w.root+"/eph", check.NoWatch)}
	case r < 95:
		return []*asked{k.create(k.w.root+"/seq/n-", znode.PersistentSequential)}
	case r < 98 || len(k.mine) == 0:
		return []*asked{k.ephemeral()}
	default:
		last := len(k.mine) - 1
		path := k.mine[last]
		k.mine = k.mine[:last]
		return []*asked{k.remove(path, znode.AnyVersion)}
	}
}

func (k *worker) create(path string, mode znode.Mode) *asked {
	v := k.value()
	return k.ask(wire.OpCreate, &wire.CreateRequest{Path: path, Data: []byte(v), ACL: znode.OpenACL,
		Mode: mode}, check.Op{Kind: check.Create, Path: path, Mode: mode, Value: v})
}

// ephemeral has a path of its own for each, so that a ghost has nowhere to hide.
func (k *worker) ephemeral() *asked {
	return k.create(fmt.Sprintf("%s/eph/c%d-%d", k.w.root, k.id, k.values), znode.Ephemeral)
}

func (k *worker) set(path string, version znode.Version) *asked {
	v := k.value()
	return k.ask(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(v), Version: version},
		check.Op{Kind: check.Set, Path: path, Value: v, Version: version})
}

func (k *worker) remove(path string, version znode.Version) *asked {
	return k.ask(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: version},
		check.Op{Kind: check.Delete, Path: path, Version: version})
}

// multi changes two registers that belong together.
func (k *worker) multi(n int) *asked {
	a, b := k.register(n&^1), k.register(n|1)
	v1, v2 := k.value(), k.value()
	parts := []check.Op{{Kind: check.Set, Path: a, Value: v1, Version: k.seen[a]},
		{Kind: check.Set, Path: b, Value: v2, Version: znode.AnyVersion}}
	switch k.rng.IntN(4) {
	case 0:
		parts = []check.Op{{Kind: check.Create, Path: a, Value: v1}, {Kind: check.Create, Path: b, Value: v2}}
	case 1:
		parts = []check.Op{{Kind: check.Delete, Path: a, Version: znode.AnyVersion},
			{Kind: check.Create, Path: b, Value: v2}}
	case 2:
		parts[0] = check.Op{Kind: check.Check, Path: a, Version: k.seen[a]}
	}
	m := &wire.MultiRequest{}
	for i := range parts {
		m.Ops = append(m.Ops, multiOp(&parts[i]))
	}
	return k.ask(wire.OpMulti, m, check.Op{Kind: check.Multi, Ops: parts})
}

func multiOp(p *check.Op) wire.MultiOp {
	switch p.Kind {
	case check.Create:
		return wire.MultiOp{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: p.Path,
			Data: []byte(p.Value), ACL: znode.OpenACL}}
	case check.Delete:
		return wire.MultiOp{Type: wire.OpDelete,
			Request: &wire.DeleteRequest{Path: p.Path, Version: p.Version}}
	case check.Check:
		return wire.MultiOp{Type: wire.OpCheck,
			Request: &wire.CheckRequest{Path: p.Path, Version: p.Version}}
	}
	return wire.MultiOp{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: p.Path,
		Data: []byte(p.Value), Version: p.Version}}
}

// synced is a linearizable read.
func (k *worker) synced(path string) []*asked {
	s := k.ask(wire.OpSync, &wire.SyncRequest{Path: path}, check.Op{Kind: check.Sync, Path: path})
	g := k.ask(wire.OpGetData, &wire.GetDataRequest{Path: path},
		check.Op{Kind: check.Get, Path: path, Synced: true, Call: s.op.Call})
	return []*asked{s, g}
}

func (k *worker) get(path string, watch check.WatchMode) *asked {
	return k.ask(wire.OpGetData, &wire.GetDataRequest{Path: path, Watch: watch != check.NoWatch},
		check.Op{Kind: check.Get, Path: path, Watch: watch})
}

func (k *worker) exists(path string, watch check.WatchMode) *asked {
	return k.ask(wire.OpExists, &wire.ExistsRequest{Path: path, Watch: watch != check.NoWatch},
		check.Op{Kind: check.Exists, Path: path, Watch: watch})
}

func (k *worker) children(path string, watch check.WatchMode) *asked {
	return k.ask(wire.OpGetChildren, &wire.GetChildrenRequest{Path: path,
		Watch: watch != check.NoWatch}, check.Op{Kind: check.Children, Path: path, Watch: watch})
}
