package lineedit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxHistory is how many lines are kept: those that a user may still look for.
const maxHistory = 1000

// History is the lines that were entered, kept in a file. It is not safe for
// concurrent use.
type History struct {
	// Secret reports lines that are not to be kept on disk; nil for none.
	Secret func(line string) bool

	file  string
	lines []string // the newest is the last
	err   error    // why the file is no longer written
}

// StateDir is the directory for what a program of the user remembers (XDG Base
// Directory Specification, XDG_STATE_HOME).
func StateDir(program string) (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, program), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", program), nil
}

// OpenHistory reads the history of a file, which need not exist.
func OpenHistory(file string) (*History, error) {
	h := &History{file: file}
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			h.lines = append(h.lines, line)
		}
	}
	if len(h.lines) <= maxHistory {
		return h, nil
	}
	h.lines = slices.Clone(h.lines[len(h.lines)-maxHistory:])
	if err := os.WriteFile(file, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("shortening the history: %w", err)
	}
	return h, nil
}

// Add appends a line, unless it is empty or the same as the last one. Lines that
// begin with a blank are forgotten with the program.
func (h *History) Add(line string) {
	if strings.TrimSpace(line) == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if len(h.lines) > maxHistory {
		h.lines = slices.Delete(h.lines, 0, 1)
	}
	if line[0] == ' ' || h.Secret != nil && h.Secret(line) || h.err != nil {
		return
	}
	h.err = h.write(line)
}

func (h *History) write(line string) error {
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// Err is why the file is no longer written, nil if it is.
func (h *History) Err() error { return h.err }

// Len is the number of lines.
func (h *History) Len() int { return len(h.lines) }

// At returns a line; 0 is the newest.
func (h *History) At(i int) string { return h.lines[len(h.lines)-1-i] }
