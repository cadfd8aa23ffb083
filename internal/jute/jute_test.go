package jute

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

func TestAppend_GoldenBytes(t *testing.T) {
	s := "é"
	tests := []struct {
		name      string
		got, want []byte
	}{
		{"int", AppendInt32(nil, 0x01020304), []byte{1, 2, 3, 4}},
		{"int -2", AppendInt32(nil, -2), []byte{0xff, 0xff, 0xff, 0xfe}},
		{"long", AppendInt64(nil, math.MinInt64+1), []byte{0x80, 0, 0, 0, 0, 0, 0, 1}},
		{"false", AppendBool(nil, false), []byte{0}},
		{"true", AppendBool(nil, true), []byte{1}},
		{"null buffer", AppendBuffer(nil, nil), []byte{0xff, 0xff, 0xff, 0xff}},
		{"empty buffer", AppendBuffer(nil, []byte{}), []byte{0, 0, 0, 0}},
		{"buffer", AppendBuffer([]byte{9}, []byte{7}), []byte{9, 0, 0, 0, 1, 7}},
		{"empty ustring", AppendUstring(nil, ""), []byte{0, 0, 0, 0}},
		{"ustring", AppendUstring(nil, s), []byte{0, 0, 0, 2, 0xc3, 0xa9}},
		{"null ustring", AppendNullableUstring(nil, nil), []byte{0xff, 0xff, 0xff, 0xff}},
		{"nullable", AppendNullableUstring(nil, &s), []byte{0, 0, 0, 2, 0xc3, 0xa9}},
		{"null vector", AppendVectorLen(nil, -1), []byte{0xff, 0xff, 0xff, 0xff}},
		{"nil strings", AppendUstrings(nil, nil), []byte{0, 0, 0, 0}},
		{"strings", AppendUstrings(nil, []string{"a"}), []byte{0, 0, 0, 1, 0, 0, 0, 1, 'a'}},
	}
	for _, tt := range tests {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("%s: got %x, want %x", tt.name, tt.got, tt.want)
		}
	}
}

func TestReader_NullAndEmptyDiffer(t *testing.T) {
	r := NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	if b := r.Buffer(); b != nil {
		t.Errorf("null is %v", b)
	}
	if b := r.Buffer(); b == nil || len(b) != 0 {
		t.Errorf("empty is %v", b)
	}
	r.Reset([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	if s := r.NullableUstring(); s != nil {
		t.Errorf("null is %q", *s)
	}
	if s := r.NullableUstring(); s == nil || *s != "" {
		t.Errorf("empty is %v", s)
	}
	r.Reset([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	if a, b := r.VectorLen(1), r.VectorLen(1); a != -1 || b != 0 {
		t.Errorf("counts are %d and %d", a, b)
	}
	if r.Err() != nil {
		t.Error(r.Err())
	}
}

func TestReader_Buffer_IsPartOfTheInputWithoutSpareCapacity(t *testing.T) {
	in := []byte{0, 0, 0, 1, 7, 8}
	b := NewReader(in).Buffer()
	if &b[0] != &in[4] || cap(b) != 1 {
		t.Errorf("cap %d", cap(b))
	}
}

func TestReader_Bool_EveryByteButZeroIsTrue(t *testing.T) {
	for _, in := range []byte{0, 1, 2, 0xff} {
		if got := NewReader([]byte{in}).Bool(); got != (in != 0) {
			t.Errorf("%d is %v", in, got)
		}
	}
}

func TestReader_Err_SaysWhereAndWhat(t *testing.T) {
	tests := []struct {
		name string
		in   []byte
		read func(*Reader)
		want Error
	}{
		{"int", []byte{1, 2, 3}, func(r *Reader) { r.Int32() },
			Error{0, "int", 4, 3, ErrTruncated}},
		{"long", []byte{0, 1, 2}, func(r *Reader) { r.Bool(); r.Int64() },
			Error{1, "long", 8, 2, ErrTruncated}},
		{"boolean", nil, func(r *Reader) { r.Bool() },
			Error{0, "boolean", 1, 0, ErrTruncated}},
		{"length of a buffer", []byte{0, 0}, func(r *Reader) { r.Buffer() },
			Error{0, "buffer", 4, 2, ErrTruncated}},
		{"buffer", []byte{0, 0, 0, 5, 1}, func(r *Reader) { r.Buffer() },
			Error{0, "buffer", 9, 5, ErrTruncated}},
		{"huge ustring", []byte{0x7f, 0xff, 0xff, 0xff}, func(r *Reader) { r.Ustring() },
			Error{0, "ustring", 4 + math.MaxInt32, 4, ErrTruncated}},
		{"negative buffer", []byte{0xff, 0xff, 0xff, 0xfe}, func(r *Reader) { r.Buffer() },
			Error{0, "buffer", -2, 0, ErrNegativeLength}},
		{"negative ustring", []byte{0x80, 0, 0, 0, 1}, func(r *Reader) { r.NullableUstring() },
			Error{0, "ustring", math.MinInt32, 1, ErrNegativeLength}},
		{"negative vector", []byte{0xff, 0xff, 0xff, 0xfe}, func(r *Reader) { r.VectorLen(1) },
			Error{0, "vector", -2, 0, ErrNegativeLength}},
		{"huge vector", []byte{0x7f, 0xff, 0xff, 0xff, 1}, func(r *Reader) { r.Ustrings() },
			Error{0, "vector", math.MaxInt32, 1, ErrCountTooLarge}},
		{"vector by one item", []byte{0, 0, 0, 2, 1, 2, 3}, func(r *Reader) { r.VectorLen(2) },
			Error{0, "vector", 2, 3, ErrCountTooLarge}},
		{"record", []byte{1, 2}, func(r *Reader) { r.Take(3, "Stat") },
			Error{0, "Stat", 3, 2, ErrTruncated}},
	}
	for _, tt := range tests {
		r := NewReader(tt.in)
		tt.read(r)
		var got *Error
		if !errors.As(r.Err(), &got) || *got != tt.want || !errors.Is(got, tt.want.Reason) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		} else if !strings.Contains(got.Error(), tt.want.Type) {
			t.Errorf("%s: error %v, want one with %q", tt.name, got, tt.want.Type)
		}
	}
}

func TestReader_Err_IsTheFirstAndStopsEverything(t *testing.T) {
	r := NewReader([]byte{0xff, 0xff, 0xff, 0xfe, 1, 1, 1, 1, 1, 1, 1, 1})
	r.Buffer()
	first := r.Err()
	if r.Int32() != 0 || r.Int64() != 0 || r.Bool() || r.Buffer() != nil || r.Ustring() != "" ||
		r.NullableUstring() != nil || r.UstringBytes() != nil || r.VectorLen(1) != 0 ||
		r.Ustrings() != nil || r.Take(1, "x") != nil || r.Rest() != nil || r.Remaining() != 0 {
		t.Error("a read after an error gave something")
	}
	r.Fail(0, "x", errors.New("second"))
	if r.Err() != first || r.Offset() != 0 {
		t.Errorf("got %v at %d, want %v", r.Err(), r.Offset(), first)
	}
}

func TestReader_Fail_KeepsTheReason(t *testing.T) {
	reason := errors.New("odd")
	r := NewReader([]byte{1, 2})
	r.Bool()
	r.Fail(1, "multi", reason)
	if !errors.Is(r.Err(), reason) || r.Err().Error() != "multi at byte 1: odd" {
		t.Errorf("got %v", r.Err())
	}
}

func TestReader_Ustrings_HugeCountAllocatesNothing(t *testing.T) {
	in := append(AppendVectorLen(nil, math.MaxInt32), make([]byte, 100)...)
	var r Reader
	// The only allocation is the error.
	if got := testing.AllocsPerRun(10, func() { r.Reset(in); r.Ustrings() }); got > 1 {
		t.Errorf("%v allocations", got)
	}
}

func TestReader_RoundTripsRandomValues(t *testing.T) {
	rng := seed.Rand(t)
	for range 1000 {
		i, l, b := int32(rng.Uint32()), int64(rng.Uint64()), rng.IntN(2) == 0
		buf := make([]byte, rng.IntN(10))
		for j := range buf {
			buf[j] = byte(rng.Uint32())
		}
		strs := []string{string(buf), "", "/a"}
		enc := AppendInt64(AppendInt32(nil, i), l)
		enc = AppendUstrings(AppendUstring(AppendBuffer(AppendBool(enc, b), buf), "s"), strs)
		r := NewReader(enc)
		if r.Int32() != i || r.Int64() != l || r.Bool() != b || !bytes.Equal(r.Buffer(), buf) ||
			r.Ustring() != "s" || !reflect.DeepEqual(r.Ustrings(), strs) {
			t.Fatalf("%x does not decode to what it was", enc)
		}
		if r.Err() != nil || r.Remaining() != 0 || r.Offset() != len(enc) {
			t.Fatalf("error %v, %d bytes left", r.Err(), r.Remaining())
		}
		for n := range enc {
			r.Reset(enc[:n])
			r.Int32()
			r.Int64()
			r.Bool()
			r.Buffer()
			r.Ustring()
			r.Ustrings()
			if !errors.Is(r.Err(), ErrTruncated) && !errors.Is(r.Err(), ErrCountTooLarge) {
				t.Fatalf("%d of %d bytes: %v", n, len(enc), r.Err())
			}
		}
	}
}

// FuzzReader lets the first argument choose which reads are made of the second.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, AppendUstrings(make([]byte, 30), []string{"a"}))
	f.Fuzz(func(t *testing.T, reads, in []byte) {
		r := NewReader(in)
		for _, read := range reads {
			before, failed := r.Offset(), r.Err() != nil
			switch read % 8 {
			case 0:
				r.Int32()
			case 1:
				r.Int64()
			case 2:
				r.Bool()
			case 3:
				r.Buffer()
			case 4:
				r.Ustring()
			case 5:
				r.NullableUstring()
			case 6:
				r.Ustrings()
			case 7:
				if n := r.VectorLen(1 + int(read)); n > r.Remaining()/(1+int(read)) {
					t.Fatalf("count %d with %d bytes left", n, r.Remaining())
				}
			}
			if r.Offset() < before || r.Offset() > len(in) || failed && r.Offset() != before {
				t.Fatalf("offset went from %d to %d of %d", before, r.Offset(), len(in))
			}
		}
	})
}
