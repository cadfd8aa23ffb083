package table

import (
	"math"
	"math/bits"
	"slices"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// HSBound is the lectures' formula for all messages of Hirschberg and Sinclair.
func HSBound(n int) float64 {
	return 8*float64(n)*(math.Log2(float64(n))+2) + 5*float64(n)
}

// HSLastPhase is the lectures' bound on the last phase: ceil(log(n-1)) + 1.
func HSLastPhase(n int) int {
	if n < 2 {
		return 0
	}
	return bits.Len(uint(n-2)) + 1
}

// HSWinners is the lectures' bound on the winners of a phase, packed as densely as they can be.
func HSWinners(n, phase int) float64 { return float64(n) / float64(int(1)<<phase+1) }

// HSSum is the lectures' sum over the phases: 4n for phase 0, n to inform the ring, and in each
// further phase at most 4*2^k messages from each winner of the phase before.
func HSSum(n int) float64 {
	sum := 5 * float64(n)
	for k := 1; k <= HSLastPhase(n); k++ {
		sum += float64(int(4)<<k) * HSWinners(n, k-1)
	}
	return sum
}

// HSMessages counts the messages of an arrangement without running it. A probe of phase k goes
// 2^k hops, and as many for its reply, or ends where a larger id is; the largest continues
// until its probes come round, and then informs the ring.
func HSMessages(ring []sim.ID) int {
	n := len(ring)
	total := n
	for i := range ring {
		left, right := distance(ring, i, n-1), distance(ring, i, 1)
		for reach := 1; ; reach *= 2 {
			if reach >= n && left == n { // there is no larger id
				total += 2 * n
				break
			}
			for _, d := range []int{left, right} {
				if d > reach {
					total += 2 * reach
				} else {
					total += d
				}
			}
			if left <= reach || right <= reach {
				break
			}
		}
	}
	return total
}

// distance is the distance from place i to the next larger id, or n if there is none.
func distance(ring []sim.ID, i, step int) int {
	n := len(ring)
	at := i
	for d := 1; d < n; d++ {
		if at = (at + step) % n; ring[at] > ring[i] {
			return d
		}
	}
	return n
}

// Search limits.
const (
	// HSExhaustive is the greatest ring of which all arrangements are tried: the 8! that are no
	// rotations of another take a tenth of a second.
	HSExhaustive = 9
	// hsWork bounds a climb, in places of rings looked at.
	hsWork = 20_000_000
	// hsPatience is how many messages fewer a step of the climb may have at first.
	hsPatience = 8
)

// HSWorst returns an arrangement of 1 to n with the most messages: of all arrangements up
// to HSExhaustive processes, and the best that climbing from several starts finds above.
func HSWorst(n int, seed uint64) (ring []sim.ID, exhaustive bool) {
	if n <= HSExhaustive {
		return hsOfAll(n), true
	}
	return hsClimb(n, seed), false
}

// hsOfAll keeps the largest id in the first place, since rotations are alike.
func hsOfAll(n int) []sim.ID {
	ids := Descending(n)
	best, most := slices.Clone(ids), HSMessages(ids)
	var permute func(k int)
	permute = func(k int) {
		if k == n {
			if m := HSMessages(ids); m > most {
				most, best = m, slices.Clone(ids)
			}
			return
		}
		for i := k; i < n; i++ {
			ids[k], ids[i] = ids[i], ids[k]
			permute(k + 1)
			ids[k], ids[i] = ids[i], ids[k]
		}
	}
	permute(1)
	return best
}

// hsClimb begins with a ring of half the size that has been climbed, a small id between any two
// of it: the cost of its phases there is that of the next ones here. Then it swaps two ids at a
// time, and keeps a swap that is no worse, or at first only a little worse, so that it can
// leave a local maximum.
func hsClimb(n int, seed uint64) []sim.ID {
	random := sim.Random(seed)
	var a, b int64
	half, _ := HSWorst((n+1)/2, seed)
	ids := hsDoubled(half, n)
	now := HSMessages(ids)
	best, most := slices.Clone(ids), now
	// An arrangement costs about n log n places.
	steps := hsWork / (n * bits.Len(uint(n)))
	for i := range steps {
		a, random = random.Next(int64(n))
		b, random = random.Next(int64(n))
		ids[a], ids[b] = ids[b], ids[a]
		m := HSMessages(ids)
		if m < now-hsPatience*(steps-i)/steps {
			ids[a], ids[b] = ids[b], ids[a]
			continue
		}
		if now = m; now > most {
			best, most = slices.Clone(ids), now
		}
	}
	return best
}

func hsDoubled(half []sim.ID, n int) []sim.ID {
	low := n - len(half)
	ids := make([]sim.ID, 0, n)
	for i, id := range half {
		ids = append(ids, id+sim.ID(low))
		if i < low {
			ids = append(ids, sim.ID(i+1))
		}
	}
	return ids
}
