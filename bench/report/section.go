package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Replace writes text between the two lines of a Markdown file that mark the
// section of that name, "<!-- begin NAME -->" and "<!-- end NAME -->", in place of
// what stood there. A section that is missing is added, and so is the file.
func Replace(file, name, text string) error {
	old, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		title, _, _ := bytes.Cut([]byte(filepath.Base(file)), []byte("."))
		old = fmt.Appendf(nil, "# Results of %s\n\nHow they were measured: [method](../notes/method.md).\n", title)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("reading the results so far: %w", err)
	}
	begin, end := fmt.Appendf(nil, "<!-- begin %s -->\n", name), fmt.Appendf(nil, "<!-- end %s -->", name)
	head, rest, found := bytes.Cut(old, begin)
	_, tail, ended := bytes.Cut(rest, end)
	switch {
	case !found:
		head, tail = append(old, '\n'), []byte("\n")
	case !ended:
		return fmt.Errorf("%s has a line %q without %q below it", file, bytes.TrimSpace(begin), end)
	}
	if err := os.WriteFile(file, slices.Concat(head, begin, []byte(text), end, tail), 0o644); err != nil {
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
