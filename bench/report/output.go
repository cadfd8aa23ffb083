package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Output is where a program writes its results, section by section.
type Output struct {
	Out string // "": a file of today in bench/results; "-": standard output; otherwise a file
	Raw string // file for everything, as JSON; "" for none

	raw map[string]any // by section
}

// Flags lets the user choose both.
func (o *Output) Flags(set *flag.FlagSet) {
	set.StringVar(&o.Out, "out", "", `file for the tables; none: bench/results/DATE.md; "-": standard output`)
	set.StringVar(&o.Raw, "raw", "", "file for all results as JSON")
}

// File is where the tables go. root is the directory of the module.
func (o *Output) File(root string, began time.Time) string {
	if o.Out == "" {
		return filepath.Join(root, "bench", "results", began.UTC().Format(time.DateOnly)+".md")
	}
	return o.Out
}

// Save writes a section's text, and all as JSON. It may be called after every step, with end as
// the reason why the results are incomplete: standard output gets only results that are
// complete or were interrupted.
func (o *Output) Save(file, section, text string, all any, end error) error {
	if o.Raw != "" {
		if o.raw == nil {
			o.raw = map[string]any{}
		}
		o.raw[section] = all
		text, err := json.MarshalIndent(o.raw, "", " ")
		if err == nil {
			err = os.WriteFile(o.Raw, text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing all results: %w", err)
		}
	}
	if file == "-" {
		if end == nil || errors.Is(end, context.Canceled) {
			fmt.Print(text)
		}
		return nil
	}
	return Replace(file, section, text)
}

// Replace writes text between the two lines of a Markdown file that mark the section of that
// name, "<!-- begin NAME -->" and "<!-- end NAME -->", in place of the old text. A section that
// is missing is added, and so is the file.
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

// Table is a table of a Markdown document.
type Table struct {
	columns int
	text    strings.Builder
}

// NewTable is a table without rows.
func NewTable(columns ...string) *Table {
	t := &Table{columns: len(columns)}
	fmt.Fprintf(&t.text, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	return t
}

// Row adds a row. Cells that are missing at its end are empty.
func (t *Table) Row(cells ...any) {
	for i := range t.columns {
		cell := any("")
		if i < len(cells) {
			cell = cells[i]
		}
		fmt.Fprintf(&t.text, "| %v ", cell)
	}
	t.text.WriteString("|\n")
}

// String is the table as Markdown, which ends with a newline.
func (t *Table) String() string { return t.text.String() }
