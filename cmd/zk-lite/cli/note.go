package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// note is a line on the terminal that changes while something takes long.
type note struct {
	w     io.Writer // nil if the output is not a terminal
	next  time.Time
	shown bool
}

// newNote writes on standard error if that is a terminal.
func newNote(c *cobra.Command) *note {
	n := &note{next: time.Now().Add(progressEvery)}
	if f, ok := c.ErrOrStderr().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		n.w = f
	}
	return n
}

// show replaces the line, a few times a second at most.
func (n *note) show(format string, args ...any) {
	if n.w == nil || time.Now().Before(n.next) {
		return
	}
	n.next, n.shown = time.Now().Add(progressEvery), true
	fmt.Fprintf(n.w, "\r\x1b[K"+format, args...)
}

// clear removes the line.
func (n *note) clear() {
	if n.shown {
		fmt.Fprint(n.w, "\r\x1b[K")
		n.shown = false
	}
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
