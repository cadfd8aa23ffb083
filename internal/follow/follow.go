// Package follow keeps the content of a file in memory, and reads the file again when it has changed. A call for
// the value checks the file, so there is no goroutine. The user parses the text.
package follow

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// LookEvery is how often a file is checked, while it is in use.
	LookEvery = 2 * time.Second
	// MaxBytes bounds a file.
	MaxBytes = 1 << 20
)

// File is a file whose content is a T.
type File[T any] struct {
	what, path string
	parse      func(text []byte) (T, error)
	logger     *slog.Logger

	mu     sync.Mutex // protects the fields below
	value  T
	looked time.Time
	stamp  Stamp  // when it was last looked at
	failed string // why it could not be used then; empty: it could
}

// Open reads a file; what is its name in the log. parse's errors must not repeat secrets.
func Open[T any](what, path string, parse func(text []byte) (T, error), logger *slog.Logger) (*File[T], error) {
	f := &File[T]{what: what, path: path, parse: parse, logger: logger, looked: time.Now(), stamp: StampOf(path)}
	var err error
	f.value, err = f.read()
	return f, err
}

// Get returns the value of the file, or its last value if the file cannot be used now.
func (f *File[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= LookEvery {
		f.looked = now
		f.followLocked()
	}
	return f.value
}

// followLocked reads the file again if it has changed, or if it could not be used: the cause may have ended without a
// change of the file. A file that cannot be used changes nothing.
func (f *File[T]) followLocked() {
	stamp := StampOf(f.path)
	same := stamp.Equal(f.stamp)
	if same && f.failed == "" {
		return
	}
	f.stamp = stamp
	value, err := f.read()
	if err != nil {
		if !same || err.Error() != f.failed {
			f.logger.Error("the new "+f.what+" cannot be used; what was in use stays in use", "error", err)
		}
		f.failed = err.Error()
		return
	}
	f.value, f.failed = value, ""
	f.logger.Info("the "+f.what+" has changed and is in use", "path", f.path)
}

func (f *File[T]) read() (value T, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		return value, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err == nil && len(text) > MaxBytes {
		err = fmt.Errorf("it is larger than %d bytes", MaxBytes)
	}
	if err == nil {
		value, err = f.parse(text)
	}
	if err != nil {
		return value, fmt.Errorf("%s: %w", f.path, err)
	}
	return value, nil
}

// Stamp shows whether a file has changed: its content or its permissions.
type Stamp struct {
	info    os.FileInfo
	changed time.Time // of its metadata (ctime), where the system has it
	err     string
}

// StampOf looks at a file.
func StampOf(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{err: err.Error()}
	}
	return Stamp{info: info, changed: ctime(info)}
}

// Equal reports whether nothing has changed between two looks.
func (s Stamp) Equal(o Stamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil && s.err == o.err
	}
	return os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() &&
		s.info.ModTime().Equal(o.info.ModTime()) && s.changed.Equal(o.changed)
}
