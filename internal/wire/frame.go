package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The bounds of frames.
const (
	// FrameLengthBytes is the size of the length that starts a frame. The
	// length does not count itself.
	FrameLengthBytes = 4
	// DefaultMaxFrame is the default of ZooKeeper's jute.maxbuffer, the largest
	// length a receiver accepts.
	DefaultMaxFrame = 0xfffff

	// frameBufferBytes is how much a FrameReader reads from its source at a time.
	frameBufferBytes = 32 << 10
	// frameKeepBytes is the largest payload buffer that a FrameReader keeps
	// between frames, so that one large reply does not cost memory forever. It
	// is also how far the buffer grows ahead of the bytes that have arrived.
	frameKeepBytes = 64 << 10
)

// ErrFrameLength reports that a frame's length is negative or above the limit.
var ErrFrameLength = errors.New("frame length out of range")

// BeginFrame appends room for a frame's length to b. The caller appends the
// payload and passes mark to EndFrame; frames can follow one another in b.
func BeginFrame(b []byte) (frame []byte, mark int) {
	return append(b, 0, 0, 0, 0), len(b)
}

// EndFrame fills in the length of the frame that BeginFrame started at mark and
// that ends with b.
func EndFrame(b []byte, mark int) {
	n := len(b) - mark - FrameLengthBytes
	if n < 0 || n > math.MaxInt32 {
		panic(fmt.Sprintf("wire: invariant broken: frame length %d is not in 0..2^31-1", n))
	}
	binary.BigEndian.PutUint32(b[mark:], uint32(n))
}

// CheckFrameLength returns the length in the first four bytes of a frame if it
// is within 0..limit, and an error that wraps ErrFrameLength otherwise.
func CheckFrameLength(header [FrameLengthBytes]byte, limit int) (int, error) {
	n := int32(binary.BigEndian.Uint32(header[:]))
	if n < 0 || int64(n) > int64(limit) {
		return 0, &FrameLengthError{header, limit}
	}
	return int(n), nil
}

// FrameLengthError is ErrFrameLength with the bytes in the place of the length.
type FrameLengthError struct {
	Header [FrameLengthBytes]byte
	limit  int
}

func (e *FrameLengthError) Error() string {
	n := int32(binary.BigEndian.Uint32(e.Header[:]))
	return fmt.Sprintf("%v: have %d bytes, want 0 to %d", ErrFrameLength, n, e.limit)
}

// Unwrap returns ErrFrameLength.
func (e *FrameLengthError) Unwrap() error { return ErrFrameLength }

// FrameReader reads frames from a stream. It is for clients and tools: a server
// also has to tell four-letter words from frames. It is not safe for concurrent
// use.
type FrameReader struct {
	src *bufio.Reader
	max int
	buf []byte // the last payload
}

// NewFrameReader returns a reader of the frames in src whose lengths are at
// most max bytes. It reads ahead.
func NewFrameReader(src io.Reader, max int) *FrameReader {
	return &FrameReader{src: bufio.NewReaderSize(src, frameBufferBytes), max: max}
}

// Next returns the payload of the next frame, which is valid until the next
// call. The error is io.EOF if the stream ends between two frames,
// io.ErrUnexpectedEOF if it ends inside one, ErrFrameLength (wrapped) if the
// length is out of range, and that of the source otherwise. After an error the
// position in the stream is lost: do not call Next again.
func (f *FrameReader) Next() ([]byte, error) {
	var header [FrameLengthBytes]byte
	// ReadFull makes the distinction between the two ends for us.
	if _, err := io.ReadFull(f.src, header[:]); err != nil {
		return nil, err
	}
	n, err := CheckFrameLength(header, f.max)
	if err != nil {
		return nil, err
	}
	if cap(f.buf) > frameKeepBytes {
		f.buf = nil
	}
	f.buf = f.buf[:0]
	for len(f.buf) < n {
		// Do not trust the length: allocate for the bytes that have arrived.
		step := min(n-len(f.buf), max(frameKeepBytes, len(f.buf)))
		start := len(f.buf)
		f.buf = append(f.buf, make([]byte, step)...)
		if _, err := io.ReadFull(f.src, f.buf[start:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return f.buf, nil
}
