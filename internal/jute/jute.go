// Package jute encodes and decodes the primitives of ZooKeeper's Jute format:
// booleans, 32- and 64-bit integers, buffers, strings and the counts of
// vectors, all big-endian, without tags or padding.
//
// Encoding appends to a byte slice that the caller owns. Decoding is a Reader
// over a byte slice with a sticky error: after the first failure every further
// read returns a zero value, so a record is decoded field by field and checked
// once at its end. Nothing here panics on outside bytes, and no length in them
// is trusted before it has been compared with the remaining bytes.
//
// It does not know records, frames, files or the network (package wire does),
// and it does not validate that strings are UTF-8.
package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// null is the length of an absent buffer, string or vector.
const null = -1

// AppendInt32 appends v as a Jute int: 4 bytes.
func AppendInt32(b []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(v))
}

// AppendInt64 appends v as a Jute long: 8 bytes.
func AppendInt64(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(v))
}

// AppendBool appends v as a Jute boolean: one byte, 0 or 1.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendBuffer appends v as a Jute buffer: its length and its bytes. A nil
// slice is written as null (length -1), an empty one as length 0.
func AppendBuffer(b, v []byte) []byte {
	if v == nil {
		return AppendInt32(b, null)
	}
	return append(AppendInt32(b, int32(len(v))), v...)
}

// AppendUstring appends v as a Jute ustring: its length in bytes and its bytes.
func AppendUstring(b []byte, v string) []byte {
	return append(AppendInt32(b, int32(len(v))), v...)
}

// AppendNullableUstring appends v as a Jute ustring, null if v is nil.
func AppendNullableUstring(b []byte, v *string) []byte {
	if v == nil {
		return AppendInt32(b, null)
	}
	return AppendUstring(b, *v)
}

// AppendVectorLen appends the count that starts a vector; the caller appends
// the n items. A count of -1 is a null vector.
func AppendVectorLen(b []byte, n int) []byte {
	return AppendInt32(b, int32(n))
}

// AppendUstrings appends v as a vector of ustrings. A nil slice is an empty
// vector and not a null one: the receivers of string vectors (Java's client
// for children, ZooKeeper's server for watches) do not expect null.
func AppendUstrings(b []byte, v []string) []byte {
	b = AppendVectorLen(b, len(v))
	for _, s := range v {
		b = AppendUstring(b, s)
	}
	return b
}

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
	Had    int    // bytes left at Offset (ErrTruncated), or after the length or count; or the limit (ErrTooLong)
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
	case errors.Is(e.Reason, ErrTooLong):
		return fmt.Sprintf("%s at byte %d: %v: have %d, want at most %d",
			e.Type, e.Offset, e.Reason, e.Wanted, e.Had)
	case errors.Is(e.Reason, ErrCountTooLarge):
		return fmt.Sprintf("%s at byte %d: %v: count %d in %d bytes",
			e.Type, e.Offset, e.Reason, e.Wanted, e.Had)
	}
	return fmt.Sprintf("%s at byte %d: %v", e.Type, e.Offset, e.Reason)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// Reader decodes Jute primitives from a byte slice, in order. Its error is
// sticky: after a failed read every read returns the zero value and consumes
// nothing. The zero Reader has no input. A Reader is not safe for concurrent
// use.
type Reader struct {
	buf []byte
	off int // Invariant: 0 <= off <= len(buf)
	err *Error
}

// NewReader returns a Reader over b, which it does not copy.
func NewReader(b []byte) *Reader { return &Reader{buf: b} }

// Reset makes r read b from its start and clears the error.
func (r *Reader) Reset(b []byte) { *r = Reader{buf: b} }

// Err returns the first error, which is an *Error, or nil.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// Offset returns how many bytes have been consumed.
func (r *Reader) Offset() int { return r.off }

// Remaining returns how many bytes remain; none after an error, so a loop until
// the end of the input always ends.
func (r *Reader) Remaining() int {
	if r.err != nil {
		return 0
	}
	return len(r.buf) - r.off
}

// Rest returns the remaining bytes without consuming them. The slice is part of
// the input; nil after an error.
func (r *Reader) Rest() []byte {
	if r.err != nil {
		return nil
	}
	return r.buf[r.off:]
}

// Fail makes reason the sticky error at the field of the given type that starts
// at byte offset, unless there is an error already. It is for rules of a record
// beyond its primitives.
func (r *Reader) Fail(offset int, typ string, reason error) {
	r.fail(Error{Offset: offset, Type: typ, Had: len(r.buf) - r.off, Reason: reason})
}

//go:noinline
func (r *Reader) fail(e Error) {
	if r.err == nil {
		r.err = &e
	}
}

// take consumes n bytes, or fails and returns nil. n is never negative.
func (r *Reader) take(n int, typ string) []byte {
	if r.err != nil {
		return nil
	}
	if had := len(r.buf) - r.off; n > had {
		r.fail(Error{Offset: r.off, Type: typ, Wanted: int64(n), Had: had, Reason: ErrTruncated})
		return nil
	}
	b := r.buf[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// Take consumes n bytes of a fixed-size record of the given type name and
// returns them, a part of the input, or nil if fewer remain.
func (r *Reader) Take(n int, typ string) []byte { return r.take(n, typ) }

// Int32 reads an int.
func (r *Reader) Int32() int32 {
	if b := r.take(4, "int"); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Int64 reads a long.
func (r *Reader) Int64() int64 {
	if b := r.take(8, "long"); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bool reads a boolean. Any byte but 0 is true, as in Java's DataInput.
func (r *Reader) Bool() bool {
	b := r.take(1, "boolean")
	return b != nil && b[0] != 0
}

// Buffer reads a buffer. It returns nil for null and a non-nil slice for an
// empty buffer. The slice is part of the input, without copying and with no
// spare capacity: it changes when the owner of the input reuses it, and it
// keeps the whole input alive. Clone it to keep it for longer.
func (r *Reader) Buffer() []byte { return r.lengthPrefixed("buffer") }

// Ustring reads a ustring; null reads as "". The string is a copy, and may be
// invalid UTF-8. (It is not called String, because printing a Reader must not
// consume its input.)
func (r *Reader) Ustring() string { return string(r.lengthPrefixed("ustring")) }

// UstringBytes reads a ustring as Buffer reads a buffer: nil for null and no
// copy. It lets a caller recognise well-known strings without allocating.
func (r *Reader) UstringBytes() []byte { return r.lengthPrefixed("ustring") }

// NullableUstring reads a ustring; nil for null.
func (r *Reader) NullableUstring() *string {
	b := r.lengthPrefixed("ustring")
	if b == nil {
		return nil
	}
	s := string(b)
	return &s
}

// lengthPrefixed reads a length and as many bytes. It returns nil for null and
// after an error, and a non-nil slice otherwise.
func (r *Reader) lengthPrefixed(typ string) []byte {
	start := r.off
	b := r.take(4, typ)
	if b == nil {
		return nil
	}
	n := int32(binary.BigEndian.Uint32(b))
	had := len(r.buf) - r.off
	switch {
	case n == null:
		return nil
	case n < 0:
		r.off = start
		r.fail(Error{Offset: start, Type: typ, Wanted: int64(n), Had: had,
			Reason: ErrNegativeLength})
		return nil
	case int(n) > had:
		r.off = start
		r.fail(Error{Offset: start, Type: typ, Wanted: 4 + int64(n), Had: 4 + had,
			Reason: ErrTruncated})
		return nil
	}
	return r.take(int(n), typ)
}

// VectorLen reads the count that starts a vector whose items take at least
// itemMin bytes each (itemMin >= 1). It returns -1 for a null vector, and 0
// after an error. A count that the remaining bytes cannot hold is an error, so
// the caller may allocate that many items.
func (r *Reader) VectorLen(itemMin int) int {
	start := r.off
	b := r.take(4, "vector")
	if b == nil {
		return 0
	}
	n := int32(binary.BigEndian.Uint32(b))
	had := len(r.buf) - r.off
	switch {
	case n < null:
		r.off = start
		r.fail(Error{Offset: start, Type: "vector", Wanted: int64(n), Had: had,
			Reason: ErrNegativeLength})
		return 0
	case int64(n)*int64(itemMin) > int64(had):
		r.off = start
		r.fail(Error{Offset: start, Type: "vector", Wanted: int64(n), Had: had,
			Reason: ErrCountTooLarge})
		return 0
	}
	return int(n)
}

// Ustrings reads a vector of ustrings; both a null and an empty vector are nil.
func (r *Reader) Ustrings() []string {
	// Each item takes at least the 4 bytes of its length.
	n := r.VectorLen(4)
	if n <= 0 {
		return nil
	}
	v := make([]string, n)
	for i := range v {
		v[i] = r.Ustring()
	}
	if r.err != nil {
		return nil
	}
	return v
}
