package table

import (
	"context"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// elect runs an election that must be safe and live.
func elect(c election.Config) (election.Result, error) {
	r, err := election.Run(c)
	if err != nil {
		return r, err
	}
	if !r.Safe || !r.Live {
		return r, fmt.Errorf("%s with n=%d, seed %d: safe %v, live %v", c.Algorithm, r.N, c.Seed,
			r.Safe, r.Live)
	}
	return r, nil
}

// Sizes of the samples behind an average. Up to exhaustive processes every case
// is run.
const (
	exhaustive = 64
	samples    = 16
	samplesBig = 4 // above 256 processes, where a run has a million messages
)

// cases returns which of n cases, numbered from 0, an average is taken over:
// all, or the middles of equal parts.
func cases(n int) []int {
	count := n
	if n > exhaustive {
		count = samples
	}
	if n > 256 {
		count = samplesBig
	}
	chosen := make([]int, count)
	for i := range chosen {
		chosen[i] = (2*i + 1) * n / (2 * count)
	}
	return chosen
}

func averageRelation(n int) Relation {
	if n > exhaustive {
		return Sampled
	}
	return Equal
}

func bullyRun(n, initiator int) (election.Result, error) {
	return elect(election.Config{Algorithm: "bully", IDs: Ascending(n),
		Initiators: []election.Initiator{{ID: sim.ID(initiator)}}, Faults: []sim.Fault{{ID: sim.ID(n)}}})
}

func bully(_ context.Context, n int, _ uint64) ([]Row, error) {
	worst, err := bullyRun(n, 1)
	if err != nil {
		return nil, err
	}
	best, err := bullyRun(n, n-1)
	if err != nil {
		return nil, err
	}
	sum := 0.0
	chosen := cases(n - 1)
	for _, i := range chosen {
		r, err := bullyRun(n, i+1)
		if err != nil {
			return nil, err
		}
		sum += float64(r.Messages.ByType["election"])
	}
	f := float64(n)
	row := Row{Family: "election", Algorithm: "bully"}
	return []Row{
		row.with("worst", "election messages", float64(worst.Messages.ByType["election"]),
			Equal, "(N-1)N/2", (f-1)*f/2),
		row.with("worst", "all messages", float64(worst.Messages.Total), Equal, "(N-1)^2 + N-2", (f-1)*(f-1)+f-2),
		row.with("worst", "time", *worst.Time, Equal, "5", 5),
		row.with("best", "coordinator messages", float64(best.Messages.ByType["coordinator"]),
			Equal, "N-2", f-2),
		row.with("best", "all messages", float64(best.Messages.Total), Equal, "N-2", f-2),
		row.with("best", "time", *best.Time, Equal, "1", 1),
		row.with("average (initiator)", "election messages", sum/float64(len(chosen)),
			averageRelation(n-1), "N(N+1)/6 - 1/(N-1)", f*(f+1)/6-1/(f-1)),
	}, nil
}

func (r Row) with(kind, quantity string, measured float64, is Relation, formula string,
	expected float64) Row {
	r.Case, r.Quantity, r.Measured = kind, quantity, measured
	r.Relation, r.Formula, r.Expected = is, formula, expected
	return r
}

func ring(_ context.Context, n int, seed uint64) ([]Row, error) {
	ids := Shuffled(n, seed+1)
	top := slices.Index(ids, sim.ID(n))
	at := func(distance int) (election.Result, error) {
		return elect(election.Config{Algorithm: "ring", IDs: ids,
			Initiators: []election.Initiator{{ID: ids[(top-distance+n)%n]}}})
	}
	worst, err := at(n - 1)
	if err != nil {
		return nil, err
	}
	best, err := at(0)
	if err != nil {
		return nil, err
	}
	sum := 0.0
	chosen := cases(n)
	for _, d := range chosen {
		r, err := at(d)
		if err != nil {
			return nil, err
		}
		sum += float64(r.Messages.Total)
	}
	f := float64(n)
	row := Row{Family: "election", Algorithm: "ring"}
	return []Row{
		row.with("worst", "all messages", float64(worst.Messages.Total), Equal, "3N-1", 3*f-1),
		row.with("worst", "time", *worst.Time, Equal, "3N-1", 3*f-1),
		row.with("best", "all messages", float64(best.Messages.Total), Equal, "2N", 2*f),
		row.with("best", "time", *best.Time, Equal, "2N", 2*f),
		row.with("average (initiator)", "all messages", sum/float64(len(chosen)),
			averageRelation(n), "2N + (N-1)/2", 2*f+(f-1)/2),
	}, nil
}

func lcr(_ context.Context, n int, seed uint64) ([]Row, error) {
	row := Row{Family: "election", Algorithm: "lcr"}
	f := float64(n)
	var rows []Row
	for _, c := range []struct {
		name, formula string
		ids           []sim.ID
		expected      float64
	}{
		{"worst (descending)", "N(N+1)/2", Descending(n), f * (f + 1) / 2},
		{"best (ascending)", "2N-1", Ascending(n), 2*f - 1},
	} {
		r, err := elect(election.Config{Algorithm: "lcr", IDs: c.ids})
		if err != nil {
			return nil, err
		}
		rows = append(rows, row.with(c.name, "candidate messages",
			float64(r.Messages.ByType["candidate"]), Equal, c.formula, c.expected))
		rows = append(rows,
			row.with(c.name, "all messages", float64(r.Messages.Total), Equal, c.formula+" + N", c.expected+f),
			row.with(c.name, "time", *r.Time, Equal, "2N", 2*f))
	}
	var measured, expected, all float64
	for i := range samples {
		ids := Shuffled(n, seed+uint64(i)+1)
		r, err := elect(election.Config{Algorithm: "lcr", IDs: ids})
		if err != nil {
			return nil, err
		}
		measured += float64(r.Messages.ByType["candidate"]) / samples
		expected += float64(DistanceSum(ids)) / samples
		all += float64(r.Messages.Total) / samples
	}
	rows = append(rows, row.with("average (arrangement)", "all messages", all, Equal, "2N + sum of distances",
		expected+f))
	return append(rows, row.with("average (arrangement)", "candidate messages", measured, Equal,
		"N + sum of distances", expected)), nil
}

func hirschberg(_ context.Context, n int, seed uint64) ([]Row, error) {
	row := Row{Family: "election", Algorithm: "hs"}
	const formula = "8N(log N + 2) + 5N"
	worst, _ := HSWorst(n, seed)
	var rows []Row
	for _, c := range []struct {
		name string
		ids  []sim.ID
	}{{"worst (searched)", worst}, {"best (ascending)", Ascending(n)}} {
		r, err := elect(election.Config{Algorithm: "hs", IDs: c.ids})
		if err != nil {
			return nil, err
		}
		all := float64(r.Messages.Total)
		rows = append(rows,
			row.with(c.name, "all messages", all, Below, "sum over phases", HSSum(n)),
			row.with(c.name, "all messages", all, Below, formula, HSBound(n)),
			row.with(c.name, "last phase", float64(len(r.Winners)), AtMost, "ceil(log(N-1)) + 1",
				float64(HSLastPhase(n))),
			// Lynch 1996, section 3.4, gives 5N to elect; telling the ring takes N.
			row.with(c.name, "time", *r.Time, Below, "5N + N", 6*float64(n)))
		for phase, winners := range r.Winners[:min(len(r.Winners), 2)] {
			rows = append(rows, row.with(c.name, fmt.Sprintf("winners of phase %d", phase), float64(winners), AtMost,
				fmt.Sprintf("N/(2^%d + 1)", phase), HSWinners(n, phase)))
		}
	}
	measured := 0.0
	for i := range samples {
		r, err := elect(election.Config{Algorithm: "hs", IDs: Shuffled(n, seed+uint64(i)+1)})
		if err != nil {
			return nil, err
		}
		measured += float64(r.Messages.Total) / samples
	}
	return append(rows, row.with("average (arrangement)", "all messages", measured, Below,
		formula, HSBound(n))), nil
}

func broadcast(_ context.Context, n int, _ uint64) ([]Row, error) {
	r, err := elect(election.Config{Algorithm: "broadcast", IDs: Ascending(n)})
	if err != nil {
		return nil, err
	}
	f := float64(n)
	row := Row{Family: "election", Algorithm: "broadcast"}
	return []Row{
		// The lectures' starter first sends a message without an id: N-1 more.
		row.with("every", "all messages", float64(r.Messages.Total), Equal, "N(N-1)", f*(f-1)),
		row.with("every", "time", *r.Time, Equal, "1", 1),
	}, nil
}

// maxAnonymous: a round costs every process one message and a view of the whole ring,
// so large rings are cubic in total; the impossibility does not depend on size.
const maxAnonymous = 128

func anonymous(_ context.Context, n int, _ uint64) ([]Row, error) {
	r, err := election.Run(election.Config{Algorithm: "anonymous", IDs: Ascending(n)})
	if err != nil {
		return nil, err
	}
	row := Row{Family: "election", Algorithm: "anonymous"}
	return []Row{row.with("every", "leaders declared", float64(r.Declared), Equal, "0", 0)}, nil
}

func majority(_ context.Context, n int, seed uint64) ([]Row, error) {
	f := float64(n)
	best, err := elect(election.Config{Algorithm: "majority", IDs: Ascending(n),
		Initiators: []election.Initiator{{ID: 1}}, Seed: seed})
	if err != nil {
		return nil, err
	}
	votes := best.Messages.ByType["request-vote"] + best.Messages.ByType["vote"]
	row := Row{Family: "election", Algorithm: "majority"}
	rows := []Row{
		row.with("best (one stands)", "vote messages", float64(votes), Equal, "2(N-1)", 2*(f-1)),
		row.with("best (one stands)", "all messages", float64(best.Messages.Total), Equal, "4(N-1)", 4*(f-1)),
		row.with("best (one stands)", "time", *best.Time, Equal, "3", 3),
	}
	// The worst case is a split vote in every term, which has no bound. On the
	// average the first or second attempt elects: a timeout lasts 10 to 20.
	mean := 0.0
	chosen := len(cases(max(n, samples)))
	for i := range chosen {
		r, err := elect(election.Config{Algorithm: "majority", IDs: Ascending(n),
			Seed: seed + uint64(i)})
		if err != nil {
			return nil, err
		}
		mean += *r.Time / float64(chosen)
	}
	return append(rows, row.with("average (own timers)", "time", mean, Below,
		"2 timeouts + 3", 43)), nil
}

// zookeeper and herd measure n processes that wait for a leader that is killed.
func zookeeper(ctx context.Context, n int, seed uint64) ([]Row, error) {
	row := Row{Family: "election", Algorithm: "zookeeper"}
	return killed(ctx, row, n, seed, false, [3]string{"1", "1", "3"}, [3]int{1, 1, 3})
}

func herd(ctx context.Context, n int, seed uint64) ([]Row, error) {
	row := Row{Family: "election", Algorithm: "zookeeper-herd"}
	return killed(ctx, row, n, seed, true, [3]string{"N", "2N-1", "5N-2"}, [3]int{n, 2*n - 1, 5*n - 2})
}

func killed(ctx context.Context, row Row, n int, seed uint64, herd bool, formulas [3]string,
	expected [3]int) ([]Row, error) {
	k := election.KillLeader{Candidates: n + 1, Herd: herd}
	o, err := election.ScenarioRunner{Seed: seed}.KillLeader(ctx, k)
	if err != nil {
		return nil, err
	}
	if o.Leaders != 1 || !o.Changed {
		return nil, fmt.Errorf("the kill of the leader among %d left %d leaders", n+1, o.Leaders)
	}
	const name = "leader dies, N wait"
	return []Row{
		row.with(name, "watch events", float64(o.Events), Equal, formulas[0],
			float64(expected[0])),
		row.with(name, "requests caused", float64(o.Requests), Equal, formulas[1],
			float64(expected[1])),
		row.with(name, "all messages", float64(o.Messages), Equal, formulas[2], float64(expected[2])),
	}, nil
}
