package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// maxWeight bounds a weight, so that sums stay far from overflow.
const maxWeight = 1_000_000

// Share is one operation of a mix.
type Share struct {
	Op     Op  `json:"op"`
	Weight int `json:"weight"` // of the sum of all weights
}

// Mix is the operations of a load, with their proportions. They are drawn at random for each
// request, so that the shares are met on average and there is no pattern.
type Mix []Share

// ParseMix reads a mix: "get", "get=90,set=10", "get:9 set:1" or "90% get 10%
// set". Weights are whole numbers, 1 if left out.
func ParseMix(text string) (Mix, error) {
	fields := strings.FieldsFunc(text, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\t' || r == '=' || r == ':'
	})
	var m Mix
	pending := 0 // a weight before its operation: "90% get"
	for _, f := range fields {
		number, isPercent := strings.CutSuffix(f, "%")
		weight, err := strconv.Atoi(number)
		if err != nil {
			op, err := ParseOp(f)
			if err != nil {
				return nil, fmt.Errorf("mix %q: %w", text, err)
			}
			m = append(m, Share{op, pending})
			pending = 0
			continue
		}
		if weight < 1 || weight > maxWeight {
			return nil, fmt.Errorf("mix %q: weight %d: 1 to %d are possible", text, weight, maxWeight)
		}
		switch {
		case !isPercent && len(m) > 0 && m[len(m)-1].Weight == 0:
			m[len(m)-1].Weight = weight // "get=90"
		case pending == 0:
			pending = weight
		default:
			return nil, fmt.Errorf("mix %q: two weights, %d and %d, for one operation",
				text, pending, weight)
		}
	}
	if pending != 0 {
		return nil, fmt.Errorf("mix %q: the weight %d belongs to no operation", text, pending)
	}
	return m, m.complete(text)
}

// complete gives a weight to shares without one, and returns an error if the whole is
// impossible.
func (m Mix) complete(text string) error {
	if len(m) == 0 {
		return errors.New(`the mix is empty; one is "get", another "get=90,set=10"`)
	}
	seen := map[Op]bool{}
	for i := range m {
		m[i].Weight = max(m[i].Weight, 1)
		if seen[m[i].Op] {
			return fmt.Errorf("mix %q: %s stands twice", text, m[i].Op)
		}
		seen[m[i].Op] = true
	}
	return nil
}

// ycsbExponent is that of the popularity of keys in YCSB.
const ycsbExponent = 0.99

// SetMix sets the mix from a text that ParseMix reads, or to a workload of YCSB with its popularity of keys: ycsb-a is
// half reads and half updates, ycsb-b 95 % reads, ycsb-c reads alone, by Zipf's law with the exponent 0.99 unless
// another is set; ycsb-d is 95 % reads of what was created last and 5 % creates.
func (c *Config) SetMix(text string) (err error) {
	reads, ycsb := map[string]int{"ycsb-a": 50, "ycsb-b": 95, "ycsb-c": 100, "ycsb-d": 95}[text]
	if !ycsb {
		c.Mix, err = ParseMix(text)
		return err
	}
	c.Latest = text == "ycsb-d"
	if c.Zipf == 0 {
		c.Zipf = ycsbExponent
	}
	c.Mix = Mix{{Get, reads}}
	switch {
	case c.Latest:
		c.Mix = append(c.Mix, Share{Create, 100 - reads})
	case reads < 100:
		c.Mix = append(c.Mix, Share{Set, 100 - reads})
	}
	return nil
}

// String is a form that ParseMix reads.
func (m Mix) String() string {
	if len(m) == 1 {
		return m[0].Op.String()
	}
	var parts []string
	for _, s := range m {
		parts = append(parts, fmt.Sprintf("%s=%d", s.Op, s.Weight))
	}
	return strings.Join(parts, ",")
}

func (m Mix) has(op Op) bool {
	for _, s := range m {
		if s.Op == op {
			return true
		}
	}
	return false
}

// draw picks an operation.
func (m Mix) draw(r *rand.Rand) Op {
	if len(m) == 1 {
		return m[0].Op
	}
	sum := 0
	for _, s := range m {
		sum += s.Weight
	}
	at := r.IntN(sum)
	for _, s := range m {
		if at -= s.Weight; at < 0 {
			return s.Op
		}
	}
	panic("load: invariant broken: a draw beyond the sum of the weights")
}

// Op is an operation that can be asked for.
type Op uint8

// The operations. A delete needs a znode to delete: it takes one that its own connection has
// created, and creates one when there is none, so that "delete" alone amounts to half creates
// and half deletes, each counted as such.
const (
	Get      Op = iota // getData of a random key
	Set                // setData of a random key, any version
	Create             // create of a new persistent znode
	Delete             // delete of a znode created before
	Exists             // exists of a random key
	Children           // getChildren2 of a random directory of keys
	Multi              // one multi of Config.MultiSize setData
	Sync               // sync of a random key's path

	// Also measured, but not part of a mix.
	openSession
	endSession
	Event     // of one watcher or stream
	LastEvent // of all watchers or streams of one change
	Lock      // taken and given back, by a Caller
	Session   // opened, given an ephemeral znode or its like, and closed
	opCount
)

// Ops are all operations.
func Ops() []Op {
	return []Op{Get, Set, Create, Delete, Exists, Children, Multi, Sync}
}

// String is the name that ParseMix takes.
func (o Op) String() string {
	names := [opCount]string{"get", "set", "create", "delete", "exists", "children", "multi", "sync",
		"open session", "close session", "event", "last event", "lock", "session"}
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

// dirKeys is how many keys share a directory, so that no list of children is
// larger than a frame however many keys there are.
const dirKeys = 1000

// keySpace names the znodes that are read and written: PREFIX/d0/k0 and so on.
type keySpace struct {
	prefix string
	paths  []string // of the keys
	dirs   []string
	run    string // in the names of creates; of a run that finds those of another
}

func newKeySpace(prefix string, n int) *keySpace {
	k := &keySpace{prefix: prefix}
	for i := range n {
		if i%dirKeys == 0 {
			k.dirs = append(k.dirs, fmt.Sprintf("%s/d%d", prefix, i/dirKeys))
		}
		k.paths = append(k.paths, fmt.Sprintf("%s/k%d", k.dirs[len(k.dirs)-1], i))
	}
	return k
}

// Paths are the paths of the keys.
func (c *Config) Paths() []string { return newKeySpace(c.Prefix, c.Keys).paths }

// newDir is the parent of the znodes that Create makes.
func (k *keySpace) newDir() string { return k.prefix + "/new" }

// ancestors are the prefix and the znodes above it, top first.
func (k *keySpace) ancestors() []string {
	var all []string
	parts := strings.Split(strings.Trim(k.prefix, "/"), "/")
	for i := range parts {
		all = append(all, "/"+strings.Join(parts[:i+1], "/"))
	}
	return all
}

// value is data that does not compress, the same for the same seed.
func value(seed uint64, size int) []byte {
	r := rand.New(rand.NewPCG(seed, 1<<63))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
