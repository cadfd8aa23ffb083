package load

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// dirKeys is how many keys share a directory, so that no list of children is
// larger than a frame however many keys there are.
const dirKeys = 1000

// keySpace names the znodes that are read and written: PREFIX/d0/k0 and so on.
type keySpace struct {
	prefix string
	paths  []string // of the keys
	dirs   []string
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

// newDir is the parent of what Create makes.
func (k *keySpace) newDir() string { return k.prefix + "/new" }

// ancestors are the prefix and what is above it, top first.
func (k *keySpace) ancestors() []string {
	var all []string
	parts := strings.Split(strings.Trim(k.prefix, "/"), "/")
	for i := range parts {
		all = append(all, "/"+strings.Join(parts[:i+1], "/"))
	}
	return all
}

// drawer picks keys: uniformly, or by Zipf's law with the key 0 the most
// popular.
type drawer struct {
	random *rand.Rand
	zipf   *rand.Zipf // nil: uniform
	keys   int
}

// newDrawer has a stream of its own for each connection, fixed by the seed.
// exponent is 0 for a uniform distribution, else above 1.
func newDrawer(seed uint64, conn, keys int, exponent float64) *drawer {
	d := &drawer{random: rand.New(rand.NewPCG(seed, uint64(conn))), keys: keys}
	if exponent != 0 {
		d.zipf = rand.NewZipf(d.random, exponent, 1, uint64(keys-1))
	}
	return d
}

func (d *drawer) draw() int {
	if d.zipf != nil {
		return int(d.zipf.Uint64())
	}
	return d.random.IntN(d.keys)
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
