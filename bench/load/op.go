package load

import (
	"fmt"
	"slices"
	"strings"
)

// Op is an operation that can be asked for.
type Op uint8

// The operations. A delete needs something to delete: it takes what its own
// connection has created, and creates when there is nothing, so that "delete"
// alone comes to half creates and half deletes, each counted as what it was.
const (
	Get      Op = iota // getData of a random key
	Set                // setData of a random key, any version
	Create             // create of a new persistent znode
	Delete             // delete of a znode created before
	Exists             // exists of a random key
	Children           // getChildren2 of a random directory of keys
	Multi              // one multi of Config.MultiSize setData
	Sync               // sync of a random key's path

	// What else is measured; not to be asked for in a mix.
	openSession
	endSession
	Event     // of one watcher or stream
	LastEvent // of all watchers or streams of one change
	Lock      // taken and given back, by a Caller
	opCount
)

// Ops are all operations.
func Ops() []Op {
	return []Op{Get, Set, Create, Delete, Exists, Children, Multi, Sync}
}

// String is the name that ParseMix takes.
func (o Op) String() string {
	names := [opCount]string{"get", "set", "create", "delete", "exists", "children", "multi", "sync",
		"open session", "close session", "event", "last event", "lock"}
	if o >= opCount {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return names[o]
}

// MarshalText is String.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText is ParseOp.
func (o *Op) UnmarshalText(text []byte) error {
	parsed, err := ParseOp(string(text))
	if err == nil {
		*o = parsed
	}
	return err
}

// ParseOp finds an operation by its name.
func ParseOp(name string) (Op, error) {
	i := slices.IndexFunc(Ops(), func(o Op) bool { return o.String() == name })
	if i < 0 {
		var all []string
		for _, o := range Ops() {
			all = append(all, o.String())
		}
		return 0, fmt.Errorf("operation %q is unknown; there are %s", name, strings.Join(all, ", "))
	}
	return Ops()[i], nil
}
