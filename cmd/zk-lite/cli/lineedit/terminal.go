// Package lineedit reads lines for a shell: from a terminal, with editing,
// history and completion, or from a pipe. It splits lines into words as shells
// do. It does not depend on commands or servers.
//
// # Concurrency
//
// ReadLine is called by one goroutine at a time. Notify and SetPrompt may be
// called by others at the same time. The package starts no goroutine.
package lineedit

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// Complete returns what the text before the cursor may be completed to: where
// the word to be replaced starts, and the words that may replace it.
type Complete func(before string) (start int, words []string)

// Terminal reads lines from a terminal, which it puts into raw mode only while it
// reads: programs that run between two lines see it as it was.
type Terminal struct {
	in       *os.File
	out      *os.File
	editor   *term.Terminal
	complete Complete

	mu    sync.Mutex  // protects the fields below
	saved *term.State // while in raw mode
}

// NewTerminal returns a reader of lines.
func NewTerminal(in, out *os.File, h *History, complete Complete) *Terminal {
	t := &Terminal{in: in, out: out, complete: complete}
	t.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keys{r: in}, out}, "")
	t.editor.History = h
	t.editor.AutoCompleteCallback = t.key
	return t
}

// SetPrompt replaces the prompt; it shows with the next line or notification.
func (t *Terminal) SetPrompt(p string) { t.editor.SetPrompt(p) }

// Notify shows a text above the line that is being edited.
func (t *Terminal) Notify(text string) error {
	_, err := io.WriteString(t.editor, text+"\n")
	return err
}

// ReadLine returns the next line, or io.EOF after Ctrl-D. Ctrl-C gives an empty
// one.
func (t *Terminal) ReadLine() (string, error) {
	if err := t.raw(); err != nil {
		return "", err
	}
	defer t.Restore()
	if width, height, err := term.GetSize(int(t.out.Fd())); err == nil && width > 0 {
		_ = t.editor.SetSize(width, height) // only the look of long lines depends on it
	}
	line, err := t.editor.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return line, err
}

func (t *Terminal) raw() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	saved, err := term.MakeRaw(int(t.in.Fd()))
	if err == nil {
		t.saved = saved
	}
	return err
}

// Restore gives the terminal back the mode that it had before ReadLine.
func (t *Terminal) Restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved != nil {
		_ = term.Restore(int(t.in.Fd()), t.saved) // it is gone, or cannot be helped
		t.saved = nil
	}
}

// key completes when TAB is pressed.
func (t *Terminal) key(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	start, words := t.complete(line[:pos])
	switch len(words) {
	case 0:
		return line, pos, true
	case 1:
	default:
		if prefix := commonPrefix(words); len(prefix) <= pos-start {
			if err := t.Notify(strings.Join(words, "  ")); err != nil {
				return line, pos, true
			}
		}
	}
	done := line[:start] + commonPrefix(words)
	return done + line[pos:], len(done), true
}

// commonPrefix is what all words begin with.
func commonPrefix(words []string) string {
	prefix := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, prefix) {
			_, size := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-size]
		}
	}
	return prefix
}

// The keys by which Ctrl-C is replaced: go to the end, delete all, enter.
const (
	ctrlC      = 0x03
	abandonKey = "\x05\x15\r"
)

// keys reads what is typed. The editor would take Ctrl-C for the end of input;
// here it abandons the line.
type keys struct {
	r    io.Reader
	rest []byte
}

func (k *keys) Read(b []byte) (int, error) {
	if len(k.rest) == 0 {
		buf := make([]byte, len(b))
		n, err := k.r.Read(buf)
		k.rest = []byte(strings.ReplaceAll(string(buf[:n]), string(rune(ctrlC)), abandonKey))
		if err != nil {
			return 0, err
		}
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}
