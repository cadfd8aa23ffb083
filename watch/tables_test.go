package watch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// Sets and tables beside Go maps, while they grow and shrink, with few and with many equal hashes.
func TestSet_Model(t *testing.T) {
	first := seed.Of(t)
	for _, hashes := range []uint32{4, 1 << 10, 1 << 31} {
		rnd := rand.New(rand.NewPCG(first, uint64(hashes)))
		keys := make([]*entry, 600)
		for i := range keys {
			// As in one shard: the low bits tell little.
			keys[i] = &entry{path: fmt.Sprint("/", i), hash: rnd.Uint32N(hashes) * 3 * (shardCount / 2)}
		}
		var s set[*entry, int]
		var tab table
		want := map[*entry]int{}
		for step := range 20_000 {
			e := keys[rnd.IntN(len(keys))]
			grows := step/3000%2 == 0
			old, there := want[e]
			if got := s.get(e); got != old || (tab.find(e.hash, e.path) == e) != there {
				t.Fatalf("seed %d, step %d: got %d, want %d, %v", first, step, got, old, there)
			}
			if put := rnd.IntN(8) > 0; put == grows {
				want[e] = step
				s.put(e, step)
				if !there {
					tab.insert(e)
				}
			} else {
				delete(want, e)
				if s.remove(e) != there {
					t.Fatalf("seed %d, step %d: removed %v", first, step, !there)
				}
				if there {
					tab.remove(e)
				}
			}
		}
		if !maps.Equal(maps.Collect(s.all()), want) || s.n != len(want) {
			t.Errorf("seed %d: the set has not what it should", first)
		}
		if all := slices.Collect(tab.all()); len(all) != len(want) || tab.n != len(want) {
			t.Errorf("seed %d: the table has %d entries, counts %d, want %d", first, len(all), tab.n, len(want))
		}
		for e := range want {
			s.remove(e)
			tab.remove(e)
		}
		if len(s.slots) > keptRoom || len(tab.buckets) > keptRoom {
			t.Errorf("empty, they keep %d slots and %d buckets", len(s.slots), len(tab.buckets))
		}
	}
}

// A watch takes at most 100 bytes beside its path's text, which all watchers of the path share, and never more than
// what it counts for, also just after the tables of connections have doubled.
func TestManager_Memory_IsAsCounted(t *testing.T) {
	for i, sh := range shapes(49_500) {
		m, ws, bytes := sh.fill(t, []Mode{Data, Persistent}[i%2])
		n := int64(sh.paths * sh.each)
		if counted, texts := m.bytes.Load(), int64(sh.paths*textBytes); bytes+texts > counted || bytes > 100*n {
			t.Errorf("%s: %d bytes a watch beside %d of all texts; counted %d", sh.name, bytes/n, texts, counted/n)
		}
		runtime.KeepAlive(ws)
	}
}
