package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// writeJSON writes a value on one line.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// hexadecimal is how zxids and session ids are written, as ZooKeeper's tools do.
// JSON has no integers of 64 bits that all readers keep.
type hexadecimal int64

func (h hexadecimal) String() string { return fmt.Sprintf("0x%x", uint64(h)) }

func (h hexadecimal) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// statJSON is a Stat in the words of the protocol.
type statJSON struct {
	Czxid          hexadecimal   `json:"czxid"`
	Mzxid          hexadecimal   `json:"mzxid"`
	Ctime          string        `json:"ctime"`
	Mtime          string        `json:"mtime"`
	Version        znode.Version `json:"version"`
	Cversion       znode.Version `json:"cversion"`
	Aversion       znode.Version `json:"aversion"`
	EphemeralOwner hexadecimal   `json:"ephemeralOwner"`
	DataLength     int32         `json:"dataLength"`
	NumChildren    int32         `json:"numChildren"`
	Pzxid          hexadecimal   `json:"pzxid"`
}

func newStatJSON(s client.Stat) *statJSON {
	return &statJSON{
		hexadecimal(s.Czxid), hexadecimal(s.Mzxid), timeText(s.Ctime), timeText(s.Mtime),
		s.Version, s.Cversion, s.Aversion, hexadecimal(s.EphemeralOwner),
		s.DataLength, s.NumChildren, hexadecimal(s.Pzxid),
	}
}

func timeText(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

// printStat writes a Stat under the names of zkCli.
func printStat(w io.Writer, s client.Stat) {
	fmt.Fprintf(w, "cZxid = %v\n", hexadecimal(s.Czxid))
	fmt.Fprintf(w, "ctime = %s\n", timeText(s.Ctime))
	fmt.Fprintf(w, "mZxid = %v\n", hexadecimal(s.Mzxid))
	fmt.Fprintf(w, "mtime = %s\n", timeText(s.Mtime))
	fmt.Fprintf(w, "pZxid = %v\n", hexadecimal(s.Pzxid))
	fmt.Fprintf(w, "cversion = %d\n", s.Cversion)
	fmt.Fprintf(w, "dataVersion = %d\n", s.Version)
	fmt.Fprintf(w, "aclVersion = %d\n", s.Aversion)
	fmt.Fprintf(w, "ephemeralOwner = %v\n", hexadecimal(s.EphemeralOwner))
	fmt.Fprintf(w, "dataLength = %d\n", s.DataLength)
	fmt.Fprintf(w, "numChildren = %d\n", s.NumChildren)
}

// printStatOf prints the Stat after a change: always as JSON, as text if asked
// for.
func printStatOf(as output, c *cobra.Command, path string, stat client.Stat, text bool) error {
	switch {
	case as.json():
		return writeJSON(c.OutOrStdout(), struct {
			Path string    `json:"path"`
			Stat *statJSON `json:"stat"`
		}{path, newStatJSON(stat)})
	case text:
		printStat(c.OutOrStdout(), stat)
	}
	return nil
}

// showNewest prints the first items, at most limit: a line of JSON each, or a table.
func showNewest[T any](as output, out io.Writer, all []T, limit int, table func(io.Writer, []T) error) error {
	all = all[:min(len(all), max(limit, 0))]
	if !as.json() {
		return table(out, all)
	}
	for i := range all {
		if err := writeJSON(out, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// visible shows what a terminal would not show, or obey, as the dashboard does: \u{202e}. JSON has names as they are.
func visible(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) {
			fmt.Fprintf(&b, "\\u{%x}", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
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

func isTerminal(x any) bool {
	f, ok := x.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// askYes asks a question, and is an error unless the answer is yes.
func askYes(c *cobra.Command, question string) error {
	fmt.Fprint(c.ErrOrStderr(), question+" Type yes: ")
	answer, err := next(c.Context(), func() (string, error) { return readLine(c.InOrStdin()) })
	switch {
	case c.Context().Err() != nil:
		return c.Context().Err()
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("reading the answer: %w", err)
	case strings.TrimSpace(answer) != "yes":
		return &exitError{ExitFailed, "nothing was done"}
	}
	return nil
}

// next reads a line, or returns when ctx ends. Then the one who reads is left
// behind: only the end of the program ends a read from a terminal.
func next(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		line string
		err  error
	}
	ch := make(chan result, 1)
	go func() {
		line, err := read()
		ch <- result{line, err}
	}()
	select {
	case r := <-ch:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// readLine reads a line, byte by byte, so that nothing behind it is lost.
func readLine(in io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for {
		n, err := in.Read(one)
		if n == 1 && one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[:n]...)
		if err != nil || len(line) > 1<<10 {
			return string(line), err
		}
	}
}

// lineTracker notes whether what was written ends a line, for prompts that must
// not follow data on the same line.
type lineTracker struct {
	w io.Writer

	mu      sync.Mutex // protects the field below, and the order of writes
	midLine bool
}

func (t *lineTracker) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(b) > 0 {
		t.midLine = b[len(b)-1] != '\n'
	}
	return t.w.Write(b)
}

// endLine begins a new line if the last one is not complete.
func (t *lineTracker) endLine() {
	t.mu.Lock()
	open := t.midLine
	t.mu.Unlock()
	if open {
		_, _ = io.WriteString(t, "\n") // a broken output shows in the next write
	}
}

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

// progressEvery is how often progress is shown.
const progressEvery = 200 * time.Millisecond

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
