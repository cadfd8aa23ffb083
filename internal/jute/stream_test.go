package jute_test

import (
	"bytes"
	"errors"
	"hash/adler32"
	"io"
	"math"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/zk-lite/zk-lite/internal/jute"
)

// A Stream decodes what a Reader decodes, however the bytes arrive, and its Tee gets exactly what it has consumed.
func TestStream_DecodesEveryType(t *testing.T) {
	b := jute.AppendInt32(nil, -5)
	b = jute.AppendInt64(b, math.MinInt64)
	b = jute.AppendBool(b, true)
	b = jute.AppendBuffer(b, []byte("data"))
	b = jute.AppendBuffer(b, nil)
	b = jute.AppendBuffer(b, []byte{})
	b = jute.AppendUstring(b, "größe")
	b = jute.AppendVectorLen(b, 3)
	b = jute.AppendVectorLen(b, -1)
	consumed := len(b)
	b = append(b, "rest"...)

	sum := adler32.New()
	s := jute.NewStream(iotest.OneByteReader(bytes.NewReader(b)), 4<<10)
	s.Tee(sum)
	if got := s.Int32(); got != -5 {
		t.Errorf("Int32 = %d, want -5", got)
	}
	if got := s.Int64(); got != math.MinInt64 {
		t.Errorf("Int64 = %d, want %d", got, int64(math.MinInt64))
	}
	if !s.Bool() {
		t.Error("Bool = false, want true")
	}
	if got := s.Buffer(); string(got) != "data" {
		t.Errorf("Buffer = %q, want data", got)
	}
	if got := s.Buffer(); got != nil {
		t.Errorf("Buffer of null = %q, want nil", got)
	}
	if got := s.Buffer(); got == nil || len(got) > 0 {
		t.Errorf("empty Buffer = %v, want an empty one that is not nil", got)
	}
	if got := s.Ustring(); got != "größe" {
		t.Errorf("Ustring = %q, want größe", got)
	}
	if a, b := s.VectorLen(), s.VectorLen(); a != 3 || b != -1 {
		t.Errorf("VectorLen = %d and %d, want 3 and -1", a, b)
	}
	if s.Err() != nil || s.Offset() != int64(consumed) || sum.Sum32() != adler32.Checksum(b[:consumed]) {
		t.Errorf("error %v, offset %d, checksum %#x; want none, %d, %#x", s.Err(), s.Offset(), sum.Sum32(), consumed,
			adler32.Checksum(b[:consumed]))
	}
	if rest, err := io.ReadAll(s); string(rest) != "rest" || err != nil || s.Offset() != int64(len(b)) {
		t.Errorf("the rest is %q, %v, offset %d; want rest, nil, %d", rest, err, s.Offset(), len(b))
	}
}

// Errors are sticky and tell an input that ends before a field from one that ends inside.
func TestStream_Errors(t *testing.T) {
	word := func(n int32) []byte { return jute.AppendInt32(nil, n) }
	for _, c := range []struct {
		name string
		in   []byte
		read func(s *jute.Stream)
		want error
	}{
		{"nothing", nil, func(s *jute.Stream) { s.Int32() }, io.EOF},
		{"half an int", []byte{1, 2}, func(s *jute.Stream) { s.Int32() }, jute.ErrTruncated},
		{"half a long", make([]byte, 7), func(s *jute.Stream) { s.Int64() }, jute.ErrTruncated},
		{"a length without its bytes", word(1), func(s *jute.Stream) { s.Buffer() }, jute.ErrTruncated},
		{"too few bytes", append(word(3), 1), func(s *jute.Stream) { s.Ustring() }, jute.ErrTruncated},
		{"a negative length", word(-2), func(s *jute.Stream) { s.Buffer() }, jute.ErrNegativeLength},
		{"a negative count", word(-2), func(s *jute.Stream) { s.VectorLen() }, jute.ErrNegativeLength},
		{"a length above the limit", word(101), func(s *jute.Stream) { s.Buffer() }, jute.ErrTooLong},
	} {
		s := jute.NewStream(bytes.NewReader(c.in), 100)
		c.read(s)
		if err := s.Err(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		before, at := s.Err(), s.Offset()
		s.Fail(errors.New("another"))
		if s.Int64() != 0 || s.Buffer() != nil || s.Ustring() != "" || s.VectorLen() != 0 {
			t.Errorf("%s: after the error more is read", c.name)
		}
		if s.Err() != before || s.Offset() != at {
			t.Errorf("%s: then the error is %v at byte %d, want %v at %d", c.name, s.Err(), s.Offset(), before, at)
		}
		if n, err := s.Read(make([]byte, 1)); n != 0 || err != before {
			t.Errorf("%s: Read = %d, %v after the error, want 0 and the error", c.name, n, err)
		}
	}
	broken := errors.New("broken")
	s := jute.NewStream(iotest.ErrReader(broken), 100)
	if s.Int32(); s.Err() != broken {
		t.Errorf("the reader's own error is %v, want %v", s.Err(), broken)
	}
}

// A length that claims a gigabyte costs no more memory than the bytes that are there.
func TestStream_BelievesNoLength(t *testing.T) {
	in := append(jute.AppendInt32(nil, 1<<30), make([]byte, 10)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := jute.NewStream(bytes.NewReader(in), 1<<30)
	if got := s.Buffer(); got != nil || !errors.Is(s.Err(), jute.ErrTruncated) {
		t.Errorf("Buffer = %d bytes, %v; want none, %v", len(got), s.Err(), jute.ErrTruncated)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("%d bytes were allocated, want at most %d", took, 8<<20)
	}
}
