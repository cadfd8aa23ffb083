package datadir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
)

// A snappy snapshot is the stream of snappy-java's SnappyOutputStream: a magic number, two versions, and blocks, each
// with its size before it. It is not the framing format of the snappy project.
const (
	snappyMagic   = "\x82SNAPPY\x00"
	snappyVersion = 1
	// maxBlock bounds a block, before and after: servers write blocks of 32 KiB, or of the size in the Java property
	// org.xerial.snappy.block.size.
	maxBlock = 64 << 20
	maxRatio = 22 // no three bytes stand for more than 64
)

var errSnappy = errors.New("the snappy stream is damaged")

// snappyReader decompresses such a stream.
type snappyReader struct {
	in    io.Reader
	begun bool
	block []byte // compressed
	plain []byte // decompressed
	rest  []byte // of plain, not yet read
}

func newSnappyReader(in io.Reader) *snappyReader { return &snappyReader{in: in} }

// Read implements io.Reader. Errors: of in, or errSnappy.
func (r *snappyReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		if err := r.nextBlock(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *snappyReader) nextBlock() error {
	if !r.begun {
		var head [len(snappyMagic) + 4 + 4]byte
		if _, err := io.ReadFull(r.in, head[:]); err != nil {
			return err
		}
		if need := binary.BigEndian.Uint32(head[12:]); string(head[:8]) != snappyMagic || need > snappyVersion {
			return fmt.Errorf("%w: it begins with %q, and its readers need version %d; want %q and %d", errSnappy,
				head[:8], need, snappyMagic, snappyVersion)
		}
		r.begun = true
	}
	var size [4]byte
	if _, err := io.ReadFull(r.in, size[:]); err != nil {
		return err // io.EOF at the end
	}
	n := binary.BigEndian.Uint32(size[:])
	if n == 0 || n > maxBlock {
		return fmt.Errorf("%w: a block of %d bytes; want 1 to %d", errSnappy, n, maxBlock)
	}
	var err error
	if r.block, err = readChunked(r.in, r.block, int(n)); err != nil {
		return err
	}
	length, err := s2.DecodedLen(r.block)
	if err != nil {
		return fmt.Errorf("%w: %w", errSnappy, err)
	}
	if most := min(maxBlock, int(n)*maxRatio); length > most {
		return fmt.Errorf("%w: a block of %d bytes claims %d; want at most %d", errSnappy, n, length, most)
	}
	if r.plain, err = s2.Decode(r.plain[:cap(r.plain)], r.block); err != nil {
		return fmt.Errorf("%w: %w", errSnappy, err)
	}
	r.rest = r.plain
	return nil
}

// readChunked reads n bytes into b, which it makes larger only for bytes that are there.
func readChunked(in io.Reader, b []byte, n int) ([]byte, error) {
	const chunk = 1 << 20
	for b = b[:0]; len(b) < n; {
		part := min(n-len(b), chunk)
		b = append(b, make([]byte, part)...)
		if _, err := io.ReadFull(in, b[len(b)-part:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return b, err
		}
	}
	return b, nil
}
