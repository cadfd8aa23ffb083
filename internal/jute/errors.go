package jute

import (
	"errors"
	"fmt"
)

// The reasons of an Error; compare with errors.Is.
var (
	// ErrTruncated reports that the input ends inside a field.
	ErrTruncated = errors.New("input is truncated")
	// ErrNegativeLength reports that a length or count is below -1.
	ErrNegativeLength = errors.New("length is negative")
	// ErrCountTooLarge reports that a vector claims more items than the
	// remaining bytes can hold.
	ErrCountTooLarge = errors.New("vector count is larger than the input")
)

// Error reports which field of an input could not be decoded, and why.
type Error struct {
	Offset int    // bytes from the start of the Reader's input to the field
	Type   string // Jute's name of the field's type: int, ustring, vector, ...
	Wanted int64  // bytes needed, or the length or count in the field
	Had    int    // bytes left at Offset (ErrTruncated), or after the length or count
	Reason error  // one of the sentinels above, or the error given to Reader.Fail
}

// Error describes the failure in one line.
func (e *Error) Error() string {
	switch {
	case errors.Is(e.Reason, ErrTruncated):
		return fmt.Sprintf("%s at byte %d: %v: want %d bytes, have %d",
			e.Type, e.Offset, e.Reason, e.Wanted, e.Had)
	case errors.Is(e.Reason, ErrNegativeLength):
		return fmt.Sprintf("%s at byte %d: %v: have %d, want -1 (null) or more",
			e.Type, e.Offset, e.Reason, e.Wanted)
	case errors.Is(e.Reason, ErrCountTooLarge):
		return fmt.Sprintf("%s at byte %d: %v: count %d in %d bytes",
			e.Type, e.Offset, e.Reason, e.Wanted, e.Had)
	}
	return fmt.Sprintf("%s at byte %d: %v", e.Type, e.Offset, e.Reason)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }
