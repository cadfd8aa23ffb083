package table

import (
	"math/bits"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Ascending returns the ids 1 to n clockwise.
func Ascending(n int) []sim.ID {
	ids := make([]sim.ID, n)
	for i := range ids {
		ids[i] = sim.ID(i + 1)
	}
	return ids
}

// Descending returns the ids n to 1 clockwise, LCR's worst arrangement.
func Descending(n int) []sim.ID {
	ids := make([]sim.ID, n)
	for i := range ids {
		ids[i] = sim.ID(n - i)
	}
	return ids
}

// Shuffled returns the ids 1 to n in an order drawn from seed.
func Shuffled(n int, seed uint64) []sim.ID {
	ids := Ascending(n)
	random := sim.Random(seed)
	var draw int64
	for i := n - 1; i > 0; i-- {
		draw, random = random.Next(int64(i + 1))
		ids[i], ids[draw] = ids[draw], ids[i]
	}
	return ids
}

// BitReversed returns the ids 1 to n in the order of their bit-reversed places,
// which spreads large ids evenly: as many candidates as can be survive each
// phase of Hirschberg and Sinclair, so it is their costly arrangement.
func BitReversed(n int) []sim.ID {
	width := bits.Len(uint(n - 1))
	rank := make([]sim.ID, 0, n)
	place := make([]int, 0, n)
	for i := range 1 << width {
		reversed := int(bits.Reverse(uint(i)) >> (bits.UintSize - width))
		if reversed < n {
			place = append(place, reversed)
		}
	}
	rank = rank[:n]
	for i, p := range place {
		rank[p] = sim.ID(i + 1)
	}
	return rank
}

// DistanceSum returns LCR's formula for an arrangement: n for the largest id,
// which goes all the way round, and for every other id its distance clockwise to
// the next larger one, where it is swallowed.
func DistanceSum(ring []sim.ID) int {
	n := len(ring)
	sum := 0
	for i, id := range ring {
		d := 1
		for d < n && ring[(i+d)%n] < id {
			d++
		}
		sum += d
	}
	return sum
}
