package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zk-lite/zk-lite/client"
)

// buffered is an output of many lines.
type buffered struct{ *bufio.Writer }

func newBuffered(w io.Writer) buffered { return buffered{bufio.NewWriter(w)} }

// done writes what is left, also if the command has failed.
func (b buffered) done(err error) error {
	if flushed := b.Flush(); err == nil {
		err = flushed
	}
	return err
}

// skipped collects znodes below the root that may not be read: one of them is no
// reason not to show the others.
type skipped struct {
	c        *cobra.Command
	progress *progress // nil for none
	n        int
}

// note takes the error of a walk, and returns it if it is none of those.
func (s *skipped) note(err error) error {
	if !errors.Is(err, client.ErrNoAuth) {
		return err
	}
	s.n++
	if s.progress != nil {
		s.progress.clear()
	}
	fmt.Fprintln(s.c.ErrOrStderr(), "zk-lite:", Message(err))
	return nil
}

// err is what the command ends with.
func (s *skipped) err() error {
	if s.n == 0 {
		return nil
	}
	return &exitError{ExitPartial, fmt.Sprintf("%d znodes are missing, with all below them: not permitted", s.n)}
}

// progressEvery is how often progress is shown.
const progressEvery = 200 * time.Millisecond

// progress counts on the terminal while something takes long.
type progress struct {
	w    io.Writer // nil if the output is not a terminal
	what string
	n    int
	next time.Time
}

// newProgress shows progress if standard error is a terminal.
func newProgress(c *cobra.Command, what string) *progress {
	p := &progress{what: what, next: time.Now().Add(progressEvery)}
	if f, ok := c.ErrOrStderr().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.w = f
	}
	return p
}

func (p *progress) step() {
	p.n++
	if p.w == nil || p.n%64 != 0 || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(progressEvery)
	fmt.Fprintf(p.w, "\r%d znodes %s", p.n, p.what)
}

// clear removes what was shown.
func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
