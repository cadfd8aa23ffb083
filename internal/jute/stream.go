package jute

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Stream decodes Jute primitives from an io.Reader: files, and connections whose messages have no length of their own.
// Its error is sticky, as a Reader's is. It never allocates much more than it has read, whatever a length claims. A
// Stream is not safe for concurrent use.
type Stream struct {
	in  *bufio.Reader
	tee io.Writer // nil: none
	off int64
	max int // bytes of one buffer or string
	err error
}

// ErrTooLong reports a length above the bound of a Stream.
var ErrTooLong = errors.New("length is above the limit")

// NewStream returns a Stream over in, which refuses buffers and strings of more than limit bytes.
func NewStream(in io.Reader, limit int) *Stream {
	b, ok := in.(*bufio.Reader)
	if !ok {
		b = bufio.NewReaderSize(in, 64<<10)
	}
	return &Stream{in: b, max: limit}
}

// Err returns the first error: io.EOF if the input ended before a field, an *Error with the reason ErrTruncated if it
// ended inside one, another *Error for a bad length, or the reader's own error.
func (s *Stream) Err() error { return s.err }

// Offset returns how many bytes have been consumed, with those of a field that failed.
func (s *Stream) Offset() int64 { return s.off }

// Tee makes the Stream write every byte that it consumes from now on to w, whose errors it ignores: a checksum.
func (s *Stream) Tee(w io.Writer) { s.tee = w }

// Fail makes err the sticky error unless there is one already.
func (s *Stream) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Read implements io.Reader, for bytes that are not Jute's.
func (s *Stream) Read(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.in.Read(b)
	s.consumed(b[:n])
	return n, err
}

func (s *Stream) consumed(b []byte) {
	s.off += int64(len(b))
	if s.tee != nil {
		_, _ = s.tee.Write(b)
	}
}

// fill reads len(b) bytes of a field that began at byte start.
func (s *Stream) fill(b []byte, start int64, typ string) bool {
	if s.err != nil {
		return false
	}
	n, err := io.ReadFull(s.in, b)
	s.consumed(b[:n])
	if err == io.EOF && s.off > start || errors.Is(err, io.ErrUnexpectedEOF) {
		err = &Error{Offset: int(start), Type: typ, Wanted: s.off - start - int64(n) + int64(len(b)),
			Had: int(s.off - start), Reason: ErrTruncated}
	}
	s.err = err
	return err == nil
}

// Int32 reads an int.
func (s *Stream) Int32() int32 {
	var b [4]byte
	if !s.fill(b[:], s.off, "int") {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b[:]))
}

// Int64 reads a long.
func (s *Stream) Int64() int64 {
	var b [8]byte
	if !s.fill(b[:], s.off, "long") {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b[:]))
}

// Bool reads a boolean.
func (s *Stream) Bool() bool {
	var b [1]byte
	return s.fill(b[:], s.off, "boolean") && b[0] != 0
}

// Buffer reads a buffer of its own; nil for null, a non-nil slice for an empty one.
func (s *Stream) Buffer() []byte { return s.lengthPrefixed("buffer") }

// Ustring reads a ustring; null reads as "".
func (s *Stream) Ustring() string { return string(s.lengthPrefixed("ustring")) }

func (s *Stream) lengthPrefixed(typ string) []byte {
	start := s.off
	n := s.Int32()
	switch {
	case s.err != nil || n == null:
		return nil
	case n < 0:
		s.err = &Error{Offset: int(start), Type: typ, Wanted: int64(n), Reason: ErrNegativeLength}
		return nil
	case int(n) > s.max:
		s.err = &Error{Offset: int(start), Type: typ, Wanted: int64(n), Had: s.max, Reason: ErrTooLong}
		return nil
	}
	const chunk = 1 << 20
	b := make([]byte, 0, min(int(n), chunk))
	for len(b) < int(n) {
		part := min(int(n)-len(b), chunk)
		b = append(b, make([]byte, part)...)
		if !s.fill(b[len(b)-part:], start, typ) {
			return nil
		}
	}
	return b
}

// VectorLen reads the count that starts a vector, -1 for null. The caller must not allocate that many items before it
// has read them.
func (s *Stream) VectorLen() int {
	start := s.off
	n := s.Int32()
	if n < null {
		s.Fail(&Error{Offset: int(start), Type: "vector", Wanted: int64(n), Reason: ErrNegativeLength})
		return 0
	}
	return int(n)
}
