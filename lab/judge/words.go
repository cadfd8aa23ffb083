package judge

import (
	"fmt"
	"io"
)

// Words writes the judgement for people.
func (r Result) Words(w io.Writer) {
	if f := r.Failure; f != nil {
		fmt.Fprintf(w, "FAILS in run %d, seed %d, %s: %s\n", r.Runs, f.Seed, f.Kind, f.Text)
		fmt.Fprintf(w, "the run: %s\n", f.Run)
		if f.First != f.Run {
			fmt.Fprintf(w, "made smaller, in %d runs, from: %s\n", r.Shrinks, f.First)
		}
		return
	}
	fmt.Fprintf(w, "passes: %d runs; at most %d messages without faults\n", r.Runs, r.MostMessages)
	if r.Compared > 0 {
		fmt.Fprintf(w, "messages compared in %d runs\n", r.Compared)
	}
}
