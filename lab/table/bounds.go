package table

import (
	"fmt"

	"github.com/zk-lite/zk-lite/lab/trace"
)

// Bounds returns the cost of an algorithm with n processes according to the lectures, for the
// counters of a player. Rows compare the same formulas with the measurements of runs.
func Bounds(family, algorithm string, n int) []trace.Bound {
	f := float64(n)
	all := func(kind, formula string, value float64) trace.Bound {
		return trace.Bound{Case: kind, Quantity: "all messages", Formula: formula, Value: value}
	}
	some := func(kind, quantity, formula string, value float64, types ...string) trace.Bound {
		return trace.Bound{Case: kind, Quantity: quantity, Types: types, Formula: formula, Value: value}
	}
	switch family + " " + algorithm {
	case "election bully":
		return []trace.Bound{
			some("worst", "election messages", "(N-1)N/2", (f-1)*f/2, "election"), some("worst", "time", "5", 5),
			all("best", "N-2", f-2), some("best", "time", "1", 1)}
	case "election ring":
		return []trace.Bound{all("worst", "3N-1", 3*f-1), some("worst", "time", "3N-1", 3*f-1),
			all("best", "2N", 2*f), some("best", "time", "2N", 2*f)}
	case "election lcr":
		return []trace.Bound{
			some("worst (descending)", "candidate messages", "N(N+1)/2", f*(f+1)/2, "candidate"),
			some("best (ascending)", "candidate messages", "2N-1", 2*f-1, "candidate"),
			some("worst (descending)", "time", "2N", 2*f)}
	case "election hs":
		return []trace.Bound{all("bound", "sum over phases", HSSum(n)), all("bound", "8N(log N + 2) + 5N", HSBound(n))}
	case "election broadcast":
		return []trace.Bound{all("every", "N(N-1)", f*(f-1)), some("every", "time", "1", 1)}
	case "election majority":
		return []trace.Bound{
			some("best (one stands)", "vote messages", "2(N-1)", 2*(f-1), "request-vote", "vote"),
			some("best (one stands)", "time", "3", 3)}
	case "election zookeeper":
		return []trace.Bound{some("leader dies", "watch events", "1", 1, "event")}
	case "election zookeeper-herd":
		return []trace.Bound{some("leader dies", "watch events", "N-1", f-1, "event")}
	}
	return lockBounds(algorithm, n)
}

func lockBounds(algorithm string, n int) []trace.Bound {
	f := float64(n)
	entry := func(kind, formula string, value float64) trace.Bound {
		return trace.Bound{Case: kind, Quantity: "messages per entry", Formula: formula, Value: value}
	}
	switch algorithm {
	case "central":
		return []trace.Bound{entry("every", "3", 3)}
	case "token-ring":
		return []trace.Bound{{Case: "worst", Quantity: "client delay", Formula: "N", Value: f},
			{Case: "worst", Quantity: "synchronisation delay", Formula: "N", Value: f}}
	case "lamport":
		return []trace.Bound{entry("every", "3(N-1)", 3*(f-1))}
	case "ricart-agrawala":
		return []trace.Bound{entry("every", "2(N-1)", 2*(f-1))}
	case "maekawa":
		least, mean, most := votingSets(n)
		return []trace.Bound{entry("alone, least", "3(|V|-1)", 3*(least-1)),
			entry("alone, mean", "3(|V|-1)", 3*(mean-1)), entry("alone, most", "3(|V|-1)", 3*(most-1)),
			entry("contended, most", "5(|V|-1)", 5*(most-1))}
	case "zookeeper":
		return []trace.Bound{entry("alone", "6", 6), entry("who waits", "6 + 5", 11)}
	}
	return nil
}

// lattice is how Maekawa's processes are arranged: rows of width processes, and a last one of
// rest, which is 0 if the grid is full.
func lattice(n int) (width, full, rest int) {
	for width = 1; width*width < n; width++ {
	}
	return width, n / width, n % width
}

// votingSets returns the sizes of the sets: a process votes with its row and its column, width
// + height - 1 in a full grid. If the last row is short, the columns beyond it are one shorter,
// and the sets of that row are shorter by as much as the row.
func votingSets(n int) (least, mean, most float64) {
	width, full, rest := lattice(n)
	if rest == 0 {
		v := float64(width + full - 1)
		return v, v, v
	}
	high, low, last := width+full, width+full-1, rest+full
	sum := full*(rest*high+(width-rest)*low) + rest*last
	return float64(min(low, last)), float64(sum) / float64(n), float64(max(high, last))
}

// votingSetWords writes the formula of a grid of n processes.
func votingSetWords(n int) string {
	width, full, rest := lattice(n)
	if rest == 0 {
		return fmt.Sprintf("3(|V|-1), |V|=%d+%d-1", width, full)
	}
	return fmt.Sprintf("3(|V|-1), %dx%d and %d", width, full, rest)
}
