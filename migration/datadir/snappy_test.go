package datadir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/klauspost/compress/s2"
)

// stream is a stream of SnappyOutputStream: the header and these blocks, each with its size before it.
func stream(need uint32, blocks ...[]byte) []byte {
	b := append([]byte(snappyMagic), 0, 0, 0, 1)
	b = binary.BigEndian.AppendUint32(b, need)
	for _, block := range blocks {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(block))), block...)
	}
	return b
}

func TestSnappyReader(t *testing.T) {
	block := func(text string) []byte { return s2.EncodeSnappy(nil, []byte(text)) }
	zeros := s2.EncodeSnappy(nil, make([]byte, 1<<20))
	b, err := io.ReadAll(newSnappyReader(bytes.NewReader(stream(1, block("one "), block(""), zeros, block(" two")))))
	if want := "one " + string(make([]byte, 1<<20)) + " two"; err != nil || string(b) != want {
		t.Errorf("read %d bytes, %v; want the %d of the blocks", len(b), err, len(want))
	}
	claims := func(n uint64) []byte { return append(binary.AppendUvarint(nil, n), 0, 0) }
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"nothing":                      {nil, io.EOF},
		"half a header":                {stream(1)[:9], io.ErrUnexpectedEOF},
		"the framing of snappy":        {[]byte("\xff\x06\x00\x00sNaPpY\x01\x00\x00\x00\x00\x00\x00\x00"), errSnappy},
		"a later format":               {stream(2, block("x")), errSnappy},
		"an empty block":               {stream(1, nil), errSnappy},
		"half a size":                  {append(stream(1), 0, 0), io.ErrUnexpectedEOF},
		"half a block":                 {stream(1, block("text"))[:22], io.ErrUnexpectedEOF},
		"a block of 2 GiB":             {append(stream(1), 0x7f, 0xff, 0xff, 0xff), errSnappy},
		"three bytes for 64 MiB":       {stream(1, claims(64<<20)), errSnappy},
		"three bytes for 4 GiB":        {stream(1, claims(4<<30)), errSnappy},
		"a block that is not snappy's": {stream(1, []byte{3, 0xff, 0xff}), errSnappy},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := io.ReadAll(newSnappyReader(bytes.NewReader(c.in))); !errors.Is(err, c.want) && c.want != io.EOF {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
			t.Errorf("%s: %d bytes were allocated, want at most %d", name, took, 4<<20)
		}
	}
}
