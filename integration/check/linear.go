package check

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zk-lite/zk-lite/znode"
)

// linearTimeout bounds the search in one group of znodes. A group that is not decided by then is
// counted, and is no violation: the search is exponential in the operations whose outcome is
// unknown.
const linearTimeout = 20 * time.Second

// LinearStats counts the groups that Linearizable has decided.
type LinearStats struct {
	Ops       int // operations that were looked at
	Groups    int // groups of znodes that belong together
	Undecided int // of them, those whose search timed out
}

// Linearizable checks with porcupine that there is one order of all writes, conditional writes,
// multis and reads after a sync in which each has the effect that its answer reports, and that fits
// real time. Operations without an answer may have happened at any time after their call, or never.
// Znodes that occur together in a multi are judged together. Operations on sequential and ephemeral
// znodes are left out: the server chooses the names of the former and deletes the latter
// (Sequences, Ephemerals). Parents must exist and not be ephemeral; a history keeps them fixed.
//
// Guarantees: Linearizable writes, Atomicity, Once, Durability.
func Linearizable(h *History) ([]Violation, LinearStats) {
	var f findings
	var stats LinearStats
	for _, g := range groups(h) {
		stats.Groups++
		stats.Ops += len(g.ops)
		switch porcupine.CheckOperationsTimeout(g.model(), g.porcupine(), linearTimeout) {
		case porcupine.Illegal:
			f.add("Linearizable writes", "no order explains what was answered about %s:\n%s",
				strings.Join(g.paths, ", "), g.dump())
		case porcupine.Unknown:
			stats.Undecided++
		}
	}
	return f.list, stats
}

// group is the znodes that multis tie together, and the operations on them.
type group struct {
	paths []string
	index map[string]int
	ops   []*Op
}

// groups partitions the operations that can be judged: union-find over the paths of each multi.
func groups(h *History) []*group {
	root := map[string]string{}
	var find func(p string) string
	find = func(p string) string {
		if root[p] == "" {
			root[p] = p
		}
		if root[p] != p {
			root[p] = find(root[p])
		}
		return root[p]
	}
	unfit := unfitPaths(h)
	var fit []*Op
	for i := range h.Ops {
		o := &h.Ops[i]
		if !judged(o, unfit) {
			continue
		}
		fit = append(fit, o)
		all := o.paths()
		for _, p := range all {
			root[find(p)] = find(all[0])
		}
	}
	byRoot := map[string]*group{}
	var list []*group
	for _, o := range fit {
		r := find(o.paths()[0])
		g := byRoot[r]
		if g == nil {
			g = &group{index: map[string]int{}}
			byRoot[r] = g
			list = append(list, g)
		}
		g.ops = append(g.ops, o)
		for _, p := range o.paths() {
			if _, ok := g.index[p]; !ok {
				g.index[p] = len(g.paths)
				g.paths = append(g.paths, p)
			}
		}
	}
	return list
}

// unfitPaths are those of ephemeral and sequential creates, which change without a request, or
// under a name that only an answer shows.
func unfitPaths(h *History) map[string]bool {
	unfit := map[string]bool{}
	note := func(o *Op) {
		if o.Kind == Create && (o.Mode.Ephemeral() || o.Mode.Sequential()) {
			unfit[o.Path], unfit[o.Created] = true, true
		}
	}
	for i := range h.Ops {
		note(&h.Ops[i])
		for k := range h.Ops[i].Ops {
			note(&h.Ops[i].Ops[k])
		}
	}
	return unfit
}

func judged(o *Op, unfit map[string]bool) bool {
	switch o.Kind {
	case Create, Delete, Set, Multi:
	case Get, Exists:
		if !o.Synced || o.Outcome == Unknown {
			return false
		}
	default:
		return false
	}
	if o.Outcome == Failed && !modelled(o) {
		return false // refused before it was looked at: it has no place in the order
	}
	for _, p := range o.paths() {
		if unfit[p] {
			return false
		}
	}
	return len(o.paths()) > 0
}

// modelled reports whether a failure is one that the model can reach.
func modelled(o *Op) bool {
	switch o.Code {
	case znode.ErrNoNode, znode.ErrBadVersion, znode.ErrNodeExists:
		return true
	}
	return false
}

// paths are the znodes that o reads or changes.
func (o *Op) paths() []string {
	if o.Kind != Multi {
		return []string{o.Path}
	}
	var list []string
	for _, ops := range [][]Op{o.Ops, o.If, o.Else} {
		for i := range ops {
			list = append(list, ops[i].Path)
		}
	}
	return list
}

// register is one znode in the model.
type register struct {
	exists  bool
	version znode.Version
	value   string
}

func (g *group) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return make([]register, len(g.paths)) },
		Step: func(state, input, _ any) (bool, any) {
			before := state.([]register)
			o := input.(*Op)
			after, code := g.step(before, o)
			switch o.Outcome {
			case Unknown:
				return true, after
			case Failed:
				return code == o.Code, before
			default:
				return code == znode.OK && g.shows(after, o), after
			}
		},
		Equal: func(a, b any) bool { return slices.Equal(a.([]register), b.([]register)) },
	}
}

// step applies o to a state without changing it, and returns the next one; a failure changes
// nothing.
func (g *group) step(before []register, o *Op) ([]register, znode.Error) {
	if o.Kind.Read() {
		if !before[g.index[o.Path]].exists {
			return before, znode.ErrNoNode
		}
		return before, znode.OK
	}
	after := slices.Clone(before)
	ops := o.parts()
	if o.If != nil {
		held := true
		for i := range o.If {
			held = held && edit(&after[g.index[o.If[i].Path]], &o.If[i]) == znode.OK
		}
		if ops = o.Ops; !held {
			ops = o.Else
		}
		if o.Outcome == OK && held != o.Held {
			return before, znode.ErrRuntimeInconsistency
		}
	}
	for i := range ops {
		if code := edit(&after[g.index[ops[i].Path]], &ops[i]); code != znode.OK {
			return before, code
		}
	}
	return after, znode.OK
}

// edit does one operation to one znode. A read that has not shown r fails with ErrRuntimeInconsistency, which no answer
// has.
func edit(r *register, o *Op) znode.Error {
	switch {
	case o.Kind == Exists && r.exists == (o.Outcome == Failed),
		o.Kind == Get && r.exists && o.Outcome == OK && r.value != o.Data:
		return znode.ErrRuntimeInconsistency
	case o.Kind == Exists:
		return znode.OK
	case o.Kind == Create:
		if r.exists {
			return znode.ErrNodeExists
		}
		*r = register{exists: true, value: o.Value}
		return znode.OK
	}
	switch {
	case !r.exists:
		return znode.ErrNoNode
	case o.Kind != Get && o.Version != znode.AnyVersion && o.Version != r.version:
		return znode.ErrBadVersion
	}
	switch o.Kind {
	case Delete:
		*r = register{}
	case Set:
		r.value = o.Value
		r.version++
	}
	return znode.OK
}

// shows reports whether a successful answer fits the state that it was given in.
func (g *group) shows(after []register, o *Op) bool {
	r := after[g.index[o.Path]]
	switch o.Kind {
	case Get:
		return r.value == o.Data && r.version == o.Stat.Version
	case Exists:
		return r.version == o.Stat.Version
	case Set:
		return r.version == o.Stat.Version
	}
	return true
}

func (g *group) porcupine() []porcupine.Operation {
	clients := map[int]int{}
	list := make([]porcupine.Operation, 0, len(g.ops))
	for _, o := range g.ops {
		id, ok := clients[o.Client]
		if !ok {
			id = len(clients)
			clients[o.Client] = id
		}
		end := int64(o.Return)
		if o.Outcome == Unknown {
			end = math.MaxInt64
		}
		list = append(list, porcupine.Operation{
			ClientId: id, Input: o, Call: int64(o.Call), Return: end,
		})
	}
	return list
}

// maxDump is how many operations of a group a report shows.
const maxDump = 60

func (g *group) dump() string {
	ops := slices.Clone(g.ops)
	slices.SortFunc(ops, func(a, b *Op) int { return int(a.Call - b.Call) })
	if len(ops) > maxDump {
		ops = ops[len(ops)-maxDump:]
	}
	var b strings.Builder
	for _, o := range ops {
		b.WriteString("  " + o.say() + "\n")
	}
	return b.String()
}
