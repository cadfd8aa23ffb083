package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBeginFrame_EndFrame_FillInLengths(t *testing.T) {
	b := []byte{0xee}
	for _, payload := range []string{"abc", "", "de"} {
		var mark int
		b, mark = BeginFrame(b)
		b = append(b, payload...)
		EndFrame(b, mark)
	}
	want := unhex(t, "ee 00000003 616263 00000000 00000002 6465")
	if !bytes.Equal(b, want) {
		t.Errorf("got %x, want %x", b, want)
	}
}

// frames is the stream of the payloads.
func frames(payloads ...string) []byte {
	var b []byte
	for _, p := range payloads {
		var mark int
		b, mark = BeginFrame(b)
		b = append(b, p...)
		EndFrame(b, mark)
	}
	return b
}

func TestFrameReader_Next_ReturnsEveryPayload(t *testing.T) {
	payloads := []string{"abc", "", strings.Repeat("x", 300_000), "y",
		strings.Repeat("z", DefaultMaxFrame)}
	stream := frames(payloads...)
	for name, src := range map[string]io.Reader{
		"at once":      bytes.NewReader(stream),
		"half reads":   iotest.HalfReader(bytes.NewReader(stream)),
		"data and EOF": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		f := NewFrameReader(src, DefaultMaxFrame)
		for i, want := range payloads {
			got, err := f.Next()
			if err != nil || string(got) != want {
				t.Fatalf("%s: frame %d: %d bytes, %v", name, i, len(got), err)
			}
		}
		if _, err := f.Next(); err != io.EOF {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
}

func TestFrameReader_Next_UnexpectedEOFInsideAFrame(t *testing.T) {
	stream := frames("abc", "de")
	for n := range stream {
		f := NewFrameReader(bytes.NewReader(stream[:n]), DefaultMaxFrame)
		var err error
		for err == nil {
			_, err = f.Next()
		}
		want := io.ErrUnexpectedEOF
		if n == 0 || n == 7 {
			want = io.EOF
		}
		if err != want {
			t.Errorf("%d bytes: got %v, want %v", n, err, want)
		}
	}
}

func TestFrameReader_Next_ErrFrameLength(t *testing.T) {
	const limit = 10
	for length, ok := range map[int32]bool{
		-1: false, -1 << 31: false, limit + 1: false, 1<<31 - 1: false, limit: true, 0: true,
	} {
		stream := binary.BigEndian.AppendUint32(nil, uint32(length))
		stream = append(stream, make([]byte, limit)...)
		_, err := NewFrameReader(bytes.NewReader(stream), limit).Next()
		if ok && err != nil || !ok && !errors.Is(err, ErrFrameLength) {
			t.Errorf("length %d: %v", length, err)
		}
	}
}

func TestFrameReader_Next_PassesOnTheErrorOfTheSource(t *testing.T) {
	broken := errors.New("cable cut")
	src := io.MultiReader(bytes.NewReader(frames("abc")[:5]), iotest.ErrReader(broken))
	if _, err := NewFrameReader(src, DefaultMaxFrame).Next(); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// A peer that claims a large frame and sends little makes us hold little.
func TestFrameReader_Next_MemoryFollowsTheBytes(t *testing.T) {
	stream := binary.BigEndian.AppendUint32(nil, 1<<30)
	f := NewFrameReader(bytes.NewReader(append(stream, "abc"...)), 1<<30)
	if _, err := f.Next(); err != io.ErrUnexpectedEOF {
		t.Fatalf("got %v", err)
	}
	if got := cap(f.buf); got > 2*frameKeepBytes {
		t.Errorf("holds %d bytes", got)
	}
}

func TestFrameReader_Next_DropsALargeBuffer(t *testing.T) {
	f := NewFrameReader(bytes.NewReader(frames(strings.Repeat("x", 300_000), "y")), 1<<20)
	for range 2 {
		if _, err := f.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if got := cap(f.buf); got > frameKeepBytes {
		t.Errorf("holds %d bytes", got)
	}
}
