package report

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

// Replace writes text between the two lines of a Markdown file that mark the
// section of that name, "<!-- begin NAME -->" and "<!-- end NAME -->", in place of
// what stood there. Each must stand there once.
func Replace(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	begin, end := []byte("<!-- begin "+name+" -->\n"), []byte("<!-- end "+name+" -->")
	head, rest, ok := bytes.Cut(old, begin)
	_, tail, ended := bytes.Cut(rest, end)
	if !ok || !ended || bytes.Contains(tail, begin) || bytes.Contains(tail, end) {
		return fmt.Errorf("%s must have one line %q and, below it, one %q, between which the results "+
			"belong", file, bytes.TrimSpace(begin), end)
	}
	whole := slices.Concat(head, begin, []byte(text), end, tail)
	if err := os.WriteFile(file, whole, 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// Middle is the median; of two in the middle the mean; 0 of none.
func Middle(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	n := len(v) / 2
	if len(v)%2 == 1 {
		return v[n]
	}
	return (v[n-1] + v[n]) / 2
}
