package report

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Output is where a program leaves what it has measured, section by section.
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

// Save writes a section's text, and all as JSON. It may be called after every step, with end
// as the reason why not all was measured: standard output gets only what is complete or was
// interrupted.
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
