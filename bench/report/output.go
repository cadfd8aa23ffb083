package report

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// Output is where a command leaves what it has measured.
type Output struct {
	Section string // of the document, as Replace knows it
	Out     string // "": docs/BENCHMARKS.md; "-": standard output; otherwise a file with the marks
	Raw     string // file for everything, as JSON; "" for none
}

// Flags lets the user choose both.
func (o *Output) Flags(set *flag.FlagSet) {
	set.StringVar(&o.Out, "out", "", `file for the table; none: docs/BENCHMARKS.md; "-": standard output`)
	set.StringVar(&o.Raw, "raw", "", "file for all results as JSON")
}

// Check says what Save would object to, before something long is measured in vain. root is as there.
func (o *Output) Check(root string) error {
	if o.Out == "-" {
		return nil
	}
	return Check(o.file(root), o.Section)
}

func (o *Output) file(root string) string {
	if o.Out == "" {
		return filepath.Join(root, "docs", "BENCHMARKS.md")
	}
	return o.Out
}

// Save writes the text, and all as JSON. It may be called after every step, with end
// saying why not all was measured: standard output gets only what is complete or was
// interrupted. root is the directory in which docs is.
func (o *Output) Save(root, text string, all any, end error) error {
	if o.Raw != "" {
		text, err := json.MarshalIndent(all, "", " ")
		if err == nil {
			err = os.WriteFile(o.Raw, text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing all results: %w", err)
		}
	}
	if o.Out == "-" {
		if end == nil || errors.Is(end, context.Canceled) {
			fmt.Print(text)
		}
		return nil
	}
	return Replace(o.file(root), o.Section, text)
}
