package table

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// assertHolds makes the rows of the sizes and fails for each that is broken.
func assertHolds(t *testing.T, sizes []int) {
	t.Helper()
	rows, err := Make(t.Context(), sizes, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 40*len(sizes) {
		t.Errorf("%d rows for %d sizes: want every algorithm at every size", len(rows), len(sizes))
	}
	for _, r := range rows {
		if !r.Holds {
			t.Errorf("%s %s n=%d: %s measured %v, want %s %v (%s)", r.Algorithm, r.Case, r.N,
				r.Quantity, r.Measured, r.Relation, r.Expected, r.Formula)
		}
	}
}

// sizesFrom is every size from a to b.
func sizesFrom(a, b int) (sizes []int) {
	for n := a; n <= b; n++ {
		sizes = append(sizes, n)
	}
	return sizes
}

func TestMake_SmallSizes_FormulasHold(t *testing.T) {
	tier.Seconds(t)
	assertHolds(t, sizesFrom(MinN, 24))
}

func TestMake_SampledAbove_FormulasHold(t *testing.T) {
	tier.Seconds(t)
	assertHolds(t, []int{63, 64, 65, 128, 129})
}

// TestRow_Judged_Broken shows that the check can fail.
// TestEach_GivesRowsInOrderAndStops: the rows of a size come together and in the table's order, and an error of who takes
// them ends it.
func TestEach_GivesRowsInOrderAndStops(t *testing.T) {
	var got []Row
	sizes := []int{8, 6}
	if err := Each(t.Context(), sizes, 1, func(rows []Row) error {
		for _, r := range rows {
			if r.N != rows[0].N || r.Algorithm != rows[0].Algorithm {
				t.Errorf("rows of %s, n=%d and of %s, n=%d come together", r.Algorithm, r.N, rows[0].Algorithm, rows[0].N)
			}
		}
		got = append(got, rows...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want, err := Make(t.Context(), sizes, 1)
	if err != nil || !slices.Equal(got, want) || len(want) < 50 {
		t.Errorf("%d rows, %v; Make has %d: want the same ones", len(got), err, len(want))
	}
	full, calls := errors.New("no room"), 0
	err = Each(t.Context(), sizes, 1, func([]Row) error { calls++; return full })
	if !errors.Is(err, full) || calls != 1 {
		t.Errorf("who takes the rows fails at once: %v after %d calls, want its error after 1", err, calls)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Each(stopped, sizes, 1, func([]Row) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v, want %v", err, context.Canceled)
	}
}

func TestRow_Judged_Broken(t *testing.T) {
	for _, r := range []Row{
		{Measured: 15, Relation: Equal, Expected: 16},
		{Measured: 16, Relation: Below, Expected: 16},
		{Measured: 20, Relation: Sampled, Expected: 10},
	} {
		if r.judged().Holds {
			t.Errorf("%v %s %v passes as holding", r.Measured, r.Relation, r.Expected)
		}
	}
}

func TestDistanceSum_Extremes(t *testing.T) {
	if got := DistanceSum(Ascending(6)); got != 11 {
		t.Errorf("ascending: %d, want 2n-1 = 11", got)
	}
	if got := DistanceSum(Descending(6)); got != 21 {
		t.Errorf("descending: %d, want n(n+1)/2 = 21", got)
	}
	// 3 32 5 80 6 12 clockwise: 1 + 2 + 1 + 6 + 1 + (12 to 32) 2.
	if got := DistanceSum([]sim.ID{3, 32, 5, 80, 6, 12}); got != 13 {
		t.Errorf("the slides' ring: %d, want 13", got)
	}
}

// TestBitReversed_Permutation: every id once, for sizes that are no power of two.
func TestBitReversed_Permutation(t *testing.T) {
	for n := 2; n <= 70; n++ {
		got := slices.Sorted(slices.Values(BitReversed(n)))
		if !slices.Equal(got, Ascending(n)) {
			t.Fatalf("n=%d: %v", n, got)
		}
	}
}

// TestLCR_EveryArrangementUpTo6_DistanceSum checks the formula exhaustively.
func TestLCR_EveryArrangementUpTo6_DistanceSum(t *testing.T) {
	var permute func(ids []sim.ID, k int)
	permute = func(ids []sim.ID, k int) {
		if k == len(ids) {
			r, err := election.Run(election.Config{Algorithm: "lcr", IDs: slices.Clone(ids)})
			if err != nil {
				t.Fatal(err)
			}
			if r.Messages.ByType["candidate"] != DistanceSum(ids) || !r.Safe || !r.Live {
				t.Errorf("%v: %+v, want %d candidate messages", ids, r, DistanceSum(ids))
			}
			hs, err := election.Run(election.Config{Algorithm: "hs", IDs: slices.Clone(ids)})
			if err != nil {
				t.Fatal(err)
			}
			if float64(hs.Messages.Total) >= HSBound(len(ids)) || !hs.Safe || !hs.Live {
				t.Errorf("hs %v: %+v, want under %v messages", ids, hs, HSBound(len(ids)))
			}
			return
		}
		for i := k; i < len(ids); i++ {
			ids[k], ids[i] = ids[i], ids[k]
			permute(ids, k+1)
			ids[k], ids[i] = ids[i], ids[k]
		}
	}
	for n := 2; n <= 6; n++ {
		permute(Ascending(n), 0)
	}
}

func TestParseSizes_Errors(t *testing.T) {
	for _, bad := range []string{"", "x", "2", "6,", "1025", "-4", "6;16"} {
		if got, err := ParseSizes(bad); err == nil {
			t.Errorf("%q parses as %v", bad, got)
		}
	}
	got, err := ParseSizes("6, 16,1024")
	if err != nil || !slices.Equal(got, []int{6, 16, 1024}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestLeftOut_NamesTheAlgorithmAndItsLimit: and Make leaves out just these.
func TestLeftOut_NamesTheAlgorithmAndItsLimit(t *testing.T) {
	sizes := []int{6, 128, 129, 256}
	const want = "no rows of anonymous for n=129, 256: above 128 a run takes too long"
	if got := LeftOut(sizes); !slices.Equal(got, []string{want}) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := LeftOut(sizes, "bully"); got != nil {
		t.Errorf("for bully: %q", got)
	}
	rows, err := Make(t.Context(), sizes, 1, "anonymous")
	if err != nil || len(rows) != 2 {
		t.Errorf("%d rows, %v, want those of 6 and 128", len(rows), err)
	}
	if _, err := Make(t.Context(), []int{MaxN + 1}, 1, "anonymous"); err == nil {
		t.Error("a size above MaxN was taken")
	}
}

// TestMake_Contended_SaysHowManyAsk: the case is what was run.
func TestMake_Contended_SaysHowManyAsk(t *testing.T) {
	rows, err := Make(t.Context(), []int{crowd, crowd + 1}, 1, "central")
	if err != nil {
		t.Fatal(err)
	}
	for n, name := range map[int]string{crowd: "worst (all ask)", crowd + 1: "worst (16 ask)"} {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.N == n && r.Case == name }) {
			t.Errorf("no row %q for n=%d", name, n)
		}
	}
}

// TestThroughput_IsWhatWasMeasured compares the figures with the page of the bench.
func TestThroughput_IsWhatWasMeasured(t *testing.T) {
	page, err := os.ReadFile("../../bench/results/2026-11-24-reads.md")
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string][][2]float64{}
	row := regexp.MustCompile(`(?m)^\| (\d+) \| (\d servers) \| ([\d,]+) \|`)
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		share, errShare := strconv.ParseFloat(m[1], 64)
		rate, errRate := strconv.ParseFloat(strings.ReplaceAll(m[3], ",", ""), 64)
		if errShare != nil || errRate != nil {
			t.Fatalf("the row %q has errors %v and %v, want two numbers", m[0], errShare, errRate)
		}
		measured[m[2]] = append(measured[m[2]], [2]float64{share, rate})
	}
	series := Throughput().Series
	if len(series) != 3 || len(measured) != 3 {
		t.Errorf("%d lines of %d ensembles, want 3 of 3", len(series), len(measured))
	}
	for _, s := range series {
		if !slices.Equal(s.Points, measured[s.Name]) {
			t.Errorf("%s: %v, want what was measured: %v", s.Name, s.Points, measured[s.Name])
		}
	}
}
