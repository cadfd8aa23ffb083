package check

import (
	"fmt"
	"sort"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// truth is the tree at every zxid, built from the changes.
type truth struct {
	paths    map[string][]moment
	children map[string][]string // by parent: every child there has ever been, once
}

// moment is the state of a znode after a change.
type moment struct {
	zxid   znode.Zxid
	exists bool
	value  string
	owner  znode.SessionID
}

func newTruth(changes []Change) *truth {
	t := &truth{paths: map[string][]moment{}, children: map[string][]string{}}
	for i := range changes {
		c := &changes[i]
		have := t.paths[c.Path]
		if len(have) == 0 {
			parent := parentOf(c.Path)
			t.children[parent] = append(t.children[parent], c.Path[strings.LastIndexByte(c.Path, '/')+1:])
		}
		m := moment{zxid: c.Zxid, exists: c.Type != znode.EventDeleted, value: c.Value, owner: c.Owner}
		if c.Type == znode.EventDataChanged && len(have) > 0 {
			m.owner = have[len(have)-1].owner
		}
		t.paths[c.Path] = append(have, m)
	}
	return t
}

func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// at is a znode after the transaction z.
func (t *truth) at(path string, z znode.Zxid) moment {
	list := t.paths[path]
	n := sort.Search(len(list), func(i int) bool { return list[i].zxid > z })
	if n == 0 {
		return moment{}
	}
	return list[n-1]
}

// names are the children of a znode after the transaction z, sorted.
func (t *truth) names(parent string, z znode.Zxid) []string {
	prefix := parent + "/"
	if parent == "/" {
		prefix = "/"
	}
	var names []string
	for _, n := range t.children[parent] {
		if t.at(prefix+n, z).exists {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	return names
}

// Violation is one broken promise.
type Violation struct {
	Guarantee string // its name in docs/guarantees.md
	What      string
}

// String names the guarantee and describes the violation.
func (v Violation) String() string { return v.Guarantee + ": " + v.What }

// maxViolations is how many one checker reports: the first ones suffice.
const maxViolations = 10

// findings gathers the violations of one checker.
type findings struct{ list []Violation }

func (f *findings) add(guarantee, format string, args ...any) {
	if len(f.list) < maxViolations {
		f.list = append(f.list, Violation{guarantee, fmt.Sprintf(format, args...)})
	}
}

// All runs every checker.
func All(h *History) []Violation {
	all, _ := Linearizable(h)
	all = append(all, Sessions(h)...)
	all = append(all, Once(h)...)
	all = append(all, Watches(h)...)
	all = append(all, Ephemerals(h)...)
	all = append(all, Sequences(h)...)
	return append(all, Tokens(h)...)
}

// say describes an operation for a report.
func (o *Op) say() string {
	text := fmt.Sprintf("op %d (client %d, conn %d, server %d) %v %s", o.ID, o.Client, o.Conn,
		o.Server, o.Kind, o.Path)
	if o.Value != "" {
		text += fmt.Sprintf(" value %q", o.Value)
	}
	for i := range o.Ops {
		text += fmt.Sprintf(" [%v %s version %d %q]", o.Ops[i].Kind, o.Ops[i].Path,
			o.Ops[i].Version, o.Ops[i].Value)
	}
	text += fmt.Sprintf(" called %v", o.Call)
	switch o.Outcome {
	case OK:
		text += fmt.Sprintf(" ok at %v, zxid %x", o.Return, int64(o.Zxid))
	case Failed:
		text += fmt.Sprintf(" %s at %v, zxid %x", o.Code.Name(), o.Return, int64(o.Zxid))
	default:
		text += " without an answer"
	}
	return text
}
