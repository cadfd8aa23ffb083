// Package follow keeps what stands in a file at hand, and reads the file again when it has changed. Who asks for the
// value looks at the file, so there is no goroutine. What the text means is said by its user.
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
	// LookEvery is how often a file is looked at, while somebody asks for it.
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
	info   os.FileInfo // when it was last looked at; nil: it was not there
}

// Open reads a file; what says in the log which one it is. parse's errors must not repeat what is secret.
func Open[T any](what, path string, parse func(text []byte) (T, error), logger *slog.Logger) (*File[T], error) {
	f := &File[T]{what: what, path: path, parse: parse, logger: logger, looked: time.Now()}
	var err error
	if f.info, err = os.Stat(path); err != nil {
		return nil, err
	}
	f.value, err = f.read()
	return f, err
}

// Get returns what the file says, or has said if it cannot be used now.
func (f *File[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= LookEvery {
		f.looked = now
		f.followLocked()
	}
	return f.value
}

// followLocked reads the file again if it has changed. What cannot be used changes nothing.
func (f *File[T]) followLocked() {
	info, err := os.Stat(f.path)
	same := err != nil && f.info == nil || err == nil && f.info != nil && os.SameFile(info, f.info) &&
		info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime())
	if same {
		return
	}
	if f.info = info; err != nil {
		f.info = nil
	}
	value, err := f.read()
	if err != nil {
		f.logger.Error("the new "+f.what+" cannot be used; what was in use stays in use", "error", err)
		return
	}
	f.value = value
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
