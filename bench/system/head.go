package system

import (
	"fmt"
	"strings"
	"time"
)

// Head is what stands above every table: without it no figure can be judged.
type Head struct {
	Began    time.Time
	How      string   // rounds and times, without a full stop
	End      error    // why not all was measured; nil if it was
	Versions []string // of what was measured, and whatever else is the same for all rows
}

// Head is the text of h and what there is to say about the machine, as Markdown. It
// ends with an empty line.
func (s *Site) Head(h *Head) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured on %s in %v: %s.\n\n", h.Began.UTC().Format("2006-01-02"),
		time.Since(h.Began).Round(time.Second), h.How)
	if h.End != nil {
		fmt.Fprintf(&b, "**Not complete** (%v).\n\n", h.End)
	}
	for _, list := range [][]string{s.Machine, h.Versions} {
		for _, line := range list {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	b.WriteString("\n")
	return b.String()
}
