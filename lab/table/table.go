package table

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Sizes a table may have.
const (
	// MinN is the smallest number of processes for which the formulas hold: a coordinator that
	// fails, and two processes that have to agree.
	MinN = 3
	// MaxN keeps a table within a minute; the quadratic algorithms send a
	// million messages at 1024 processes.
	MaxN = 1024
)

// Relation is how measurement and formula must compare.
type Relation string

// The relations.
const (
	Equal Relation = "="
	Below Relation = "<"
	// AtMost: the formula is a bound that is reached.
	AtMost Relation = "<="
	// Sampled: the formula is the mean over all cases, of which some were run.
	Sampled Relation = "~"
)

// Row is one measurement.
type Row struct {
	Family    string   `json:"family"` // election or mutex
	Algorithm string   `json:"algorithm"`
	Case      string   `json:"case"`
	N         int      `json:"n"`
	Quantity  string   `json:"quantity"`
	Measured  float64  `json:"measured"`
	Relation  Relation `json:"relation"`
	Formula   string   `json:"formula"`
	Expected  float64  `json:"expected"`
	Holds     bool     `json:"holds"`
}

// sampleTolerance is how far the mean of a sample may differ from that of all cases. The
// samples are evenly spread, so the difference is the rounding of their places, not chance.
const sampleTolerance = 0.25

func (r Row) judged() Row {
	switch r.Relation {
	case Equal:
		r.Holds = math.Abs(r.Measured-r.Expected) < 1e-6*max(1, r.Expected)
	case Below:
		r.Holds = r.Measured < r.Expected
	case AtMost:
		r.Holds = r.Measured <= r.Expected
	case Sampled:
		r.Holds = math.Abs(r.Measured-r.Expected) <= sampleTolerance*r.Expected
	}
	return r
}

// ParseSizes reads a list such as 6,16,64.
func ParseSizes(text string) ([]int, error) {
	var sizes []int
	for part := range strings.SplitSeq(text, ",") {
		id, err := sim.ParseID(part)
		if err != nil || int(id) < MinN || int(id) > MaxN {
			return nil, fmt.Errorf("size %q: want a whole number from %d to %d", part, MinN, MaxN)
		}
		sizes = append(sizes, int(id))
	}
	return sizes, nil
}

// Algorithms returns the names that Make knows, sorted.
func Algorithms() []string {
	known := map[string]bool{}
	for _, m := range measures() {
		known[m.algorithm] = true
	}
	return slices.Sorted(maps.Keys(known))
}

// CheckAlgorithms returns an error for a name that Make does not know.
func CheckAlgorithms(names ...string) error {
	known := Algorithms()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("algorithm %q is unknown: want one of %s", name,
				strings.Join(known, ", "))
		}
	}
	return nil
}

// Make measures all rows for all sizes, grouped by algorithm. Only the algorithms named are
// measured, or all if none is; "zookeeper" names the election and the lock. LeftOut lists the
// rows that are not made.
func Make(ctx context.Context, sizes []int, seed uint64, only ...string) ([]Row, error) {
	var rows []Row
	err := Each(ctx, sizes, seed, func(more []Row) error {
		rows = append(rows, more...)
		return nil
	}, only...)
	return rows, err
}

// mostAtOnce bounds how many cells of the table are measured at once: each of the largest takes some
// hundred megabytes.
const mostAtOnce = 4

// cell is one algorithm at one size.
type cell struct {
	measure
	n    int
	rows []Row
	err  error
	done chan struct{}
}

// Each measures the rows as Make does, and gives them to take in the same order: those of an algorithm at a size, as
// soon as they and all before them are there.
func Each(ctx context.Context, sizes []int, seed uint64, take func([]Row) error, only ...string) error {
	if err := CheckAlgorithms(only...); err != nil {
		return err
	}
	var cells []*cell
	for _, m := range measures() {
		if len(only) > 0 && !slices.Contains(only, m.algorithm) {
			continue
		}
		for _, n := range m.fitting(sizes) {
			if n < MinN || n > MaxN {
				return fmt.Errorf("size %d: want %d to %d", n, MinN, MaxN)
			}
			cells = append(cells, &cell{measure: m, n: n, done: make(chan struct{})})
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	next := make(chan *cell, len(cells))
	for _, c := range cells {
		next <- c
	}
	close(next)
	for range min(runtime.GOMAXPROCS(0), mostAtOnce) {
		workers.Go(func() {
			for c := range next {
				c.fill(ctx, seed)
			}
		})
	}
	for _, c := range cells {
		if <-c.done; c.err != nil {
			return c.err
		}
		if err := take(c.rows); err != nil {
			return err
		}
	}
	return nil
}

// fill measures the cell, unless that is no longer wanted.
func (c *cell) fill(ctx context.Context, seed uint64) {
	defer close(c.done)
	if err := ctx.Err(); err != nil {
		c.err = fmt.Errorf("making the table: %w", err)
		return
	}
	if c.rows, c.err = c.make(ctx, c.n, seed); c.err != nil {
		c.err = fmt.Errorf("measuring at n=%d: %w", c.n, c.err)
	}
	for i, r := range c.rows {
		r.N = c.n
		c.rows[i] = r.judged()
	}
}

// measure makes the rows of one algorithm at one size.
type measure struct {
	algorithm string
	make      func(ctx context.Context, n int, seed uint64) ([]Row, error)
	max       int // number of processes it is made for
}

func measures() []measure {
	return []measure{{"bully", bully, MaxN}, {"ring", ring, MaxN}, {"lcr", lcr, MaxN},
		{"hs", hirschberg, MaxN}, {"broadcast", broadcast, MaxN},
		{"anonymous", anonymous, maxAnonymous}, {"majority", majority, MaxN},
		{"zookeeper-herd", herd, MaxN}, {"zookeeper", zookeeper, MaxN},
		{"central", central, MaxN}, {"token-ring", tokenRing, MaxN}, {"lamport", lamport, MaxN},
		{"ricart-agrawala", ricart, MaxN}, {"maekawa", maekawa, MaxN}, {"zookeeper", lock, MaxN}}
}

// fitting returns the sizes that are not too large for the measure, of those a table
// may have; Make refuses the others.
func (m measure) fitting(sizes []int) []int {
	return slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n > m.max && n <= MaxN })
}

// LeftOut lists, in a sentence each, which sizes Make leaves out for which algorithms.
func LeftOut(sizes []int, only ...string) []string {
	var notes []string
	for _, m := range measures() {
		var out []string
		for _, n := range sizes {
			if n > m.max {
				out = append(out, fmt.Sprint(n))
			}
		}
		if len(out) > 0 && (len(only) == 0 || slices.Contains(only, m.algorithm)) {
			notes = append(notes, fmt.Sprintf("no rows of %s for n=%s: above %d a run takes too long",
				m.algorithm, strings.Join(out, ", "), m.max))
		}
	}
	return notes
}

// Printer writes a table in columns, as its rows come.
type Printer struct {
	to   io.Writer
	last string // algorithm
}

const form = "%-15s %-21s %5s  %-21s %10s %-2s %10s  %-25s %s\n"

// NewPrinter writes the head of the table.
func NewPrinter(w io.Writer) (*Printer, error) {
	_, err := fmt.Fprintf(w, form, "algorithm", "case", "n", "quantity", "measured", "", "formula", "", "")
	return &Printer{to: w}, err
}

// Print writes rows.
func (p *Printer) Print(rows []Row) error {
	var b strings.Builder
	for _, r := range rows {
		if r.Algorithm != p.last && p.last != "" {
			b.WriteString("\n")
		}
		p.last = r.Algorithm
		holds := "ok"
		if !r.Holds {
			holds = "BROKEN"
		}
		fmt.Fprintf(&b, form, r.Algorithm, r.Case, fmt.Sprint(r.N), r.Quantity,
			number(r.Measured), r.Relation, number(r.Expected), r.Formula, holds)
	}
	_, err := io.WriteString(p.to, b.String())
	return err
}

func number(v float64) string {
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
