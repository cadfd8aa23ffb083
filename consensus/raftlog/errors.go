package raftlog

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("raftlog: the log is closed")

// ErrEntryTooLarge is wrapped by the error of an append whose entry does not fit a segment.
var ErrEntryTooLarge = errors.New("raftlog: entry does not fit a segment")

// errStopped ends work in the background when the store is closed.
var errStopped = errors.New("raftlog: closing")

// CorruptError is returned if the files lack something that had been made durable in them. A server that
// gets it at start must not run with this log: it has forgotten entries that it acknowledged, and
// could elect a leader that lacks committed entries.
type CorruptError struct {
	File   string // path of the damaged or missing file
	Offset int64  // bytes from the start of the file
	Index  uint64 // index of the first entry that is lost, 0 if unknown
	Reason string // what is wrong there
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("raftlog: corrupt log: %s: offset %d, index %d: %s; restore the file, or "+
		"remove this server from the ensemble, empty its data directory and add it as a new one",
		e.File, e.Offset, e.Index, e.Reason)
}
