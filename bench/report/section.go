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
	head, tail, err := around(file, name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, slices.Concat(head, []byte(text), tail), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// Check says what Replace would object to, before something long is measured in vain.
func Check(file, name string) error {
	_, _, err := around(file, name)
	return err
}

// around gives what stands before and behind a section, its marks included.
func around(file, name string) (head, tail []byte, err error) {
	old, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("where the results belong: %w", err)
	}
	begin, end := []byte("<!-- begin "+name+" -->\n"), []byte("<!-- end "+name+" -->")
	head, rest, ok := bytes.Cut(old, begin)
	_, tail, ended := bytes.Cut(rest, end)
	if !ok || !ended || bytes.Contains(tail, begin) || bytes.Contains(tail, end) {
		return nil, nil, fmt.Errorf("%s must have one line %q and, below it, one %q, between which the results "+
			"belong", file, bytes.TrimSpace(begin), end)
	}
	return slices.Concat(head, begin), slices.Concat(end, tail), nil
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
