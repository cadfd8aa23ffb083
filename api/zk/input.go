package zk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// smallInput is the buffer of a connection that sends little. A ping and the usual
// single request fit.
const smallInput = 512

// busyFor is how long a connection keeps a larger buffer after the last read
// that needed it, and its goroutine after the last request.
const busyFor = time.Second

// input collects a connection's bytes into frames. It belongs to the reader.
//
// Invariant: the bytes that have arrived and are not consumed are
// buf[from:to]; buf is nil while the connection waits without its goroutine, a
// small buffer, pool's buffer, or an array of its own for a frame larger than
// that.
type input struct {
	share    // a frame that has arrived in part, if its buffer is a large one
	pool     *buffers
	partial  *shares
	maxFrame int

	buf      []byte
	from, to int
	pooled   *buffer   // buf's, if it is from the pool
	needed   time.Time // when the larger buffer was last of use
	until    time.Time // the read deadline that ends the time of buf, or of the goroutine
	counted  bool      // in partial
}

// errIdle is the end of the time that a goroutine waits for its client.
var errIdle = errors.New("the client sends nothing")

// smallBuffers are those of connections that wait now.
var smallBuffers = sync.Pool{New: func() any { return new([smallInput]byte) }}

func (in *input) init(c net.Conn, pool *buffers, partial *shares, maxFrame int) {
	in.conn, in.pool, in.partial, in.maxFrame = c, pool, partial, maxFrame
}

// have is the number of bytes that wait.
func (in *input) have() int { return in.to - in.from }

// frame returns the payload of the next frame if all of it has arrived, else
// nil. It is valid until fill. The error is wire.ErrFrameLength.
func (in *input) frame() ([]byte, error) {
	if in.have() < wire.FrameLengthBytes {
		return nil, nil
	}
	n, err := wire.CheckFrameLength([4]byte(in.buf[in.from:]), in.limit())
	if err != nil {
		if int32(in.head()) > 0 && in.have() < wire.FrameLengthBytes+wire.RequestHeaderBytes {
			return nil, nil // what it is decides how long it may be
		}
		return nil, err
	}
	end := in.from + wire.FrameLengthBytes + n
	if end > in.to {
		return nil, nil
	}
	payload := in.buf[in.from+wire.FrameLengthBytes : end : end]
	in.from = end
	in.release()
	return payload, nil
}

// maxSetWatches is how long a setWatches may be at least, in bytes, whatever jute.maxbuffer is. Clients send it by
// themselves after they have reconnected, and some, such as C's, all watches in one. No one would see an error.
const maxSetWatches = 16 << 20

// limit is how long the next frame may be.
func (in *input) limit() int {
	if in.have() >= wire.FrameLengthBytes+wire.RequestHeaderBytes {
		kind := in.buf[in.from+wire.FrameLengthBytes+4:] // after the xid
		switch wire.OpCode(int32(binary.BigEndian.Uint32(kind))) {
		case wire.OpSetWatches, wire.OpSetWatches2:
			return max(in.maxFrame, maxSetWatches)
		}
	}
	return in.maxFrame
}

// head returns the first four bytes, which must have arrived.
func (in *input) head() uint32 { return binary.BigEndian.Uint32(in.buf[in.from:]) }

// waiting returns the bytes that have arrived.
func (in *input) waiting() []byte { return in.buf[in.from:in.to] }

// take consumes n of the bytes that wait.
func (in *input) take(n int) []byte {
	b := in.buf[in.from : in.from+n]
	in.from += n
	return b
}

// discard drops the bytes that have arrived.
func (in *input) discard() { in.from, in.to = 0, 0 }

// fill waits for more bytes. What frame returned before is overwritten.
func (in *input) fill() error {
	in.makeRoom()
	n, err := in.conn.Read(in.buf[in.to:])
	in.to += n
	if n > 0 {
		return nil
	}
	return err
}

// fillNow is fill that does not wait. It reports whether there was anything.
func (in *input) fillNow() bool {
	in.makeRoom()
	n := rawconn.ReadNow(in.conn, in.buf[in.to:])
	in.to += n
	return n > 0
}

// isPing reports whether a ping has arrived, and nothing else.
func (in *input) isPing() bool {
	const ping = wire.FrameLengthBytes + wire.RequestHeaderBytes
	return in.have() == ping && in.head() == wire.RequestHeaderBytes &&
		wire.OpCode(int32(binary.BigEndian.Uint32(in.waiting()[ping-4:]))) == wire.OpPing
}

// fillOpen is fill for a connection that has a session, which may be silent for any time, but not keep a large buffer
// meanwhile; nor, with idles, the goroutine: then it returns errIdle. It returns errLeaving when the client is to
// leave.
func (in *input) fillOpen(now time.Time, leaving *atomic.Int32, idles bool) error {
	for {
		in.makeRoom()
		if in.have() == 0 && now.Sub(in.needed) > busyFor {
			in.shrink()
		}
		if err := in.watch(now, idles); err != nil {
			return fmt.Errorf("setting a read deadline: %w", err)
		}
		if leaving.Load() != 0 { // after watch, which may have undone leave's deadline
			return errLeaving
		}
		n, err := in.conn.Read(in.buf[in.to:])
		in.to += n
		if n >= smallInput {
			in.needed = now
		}
		if n > 0 {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		now = time.Now()
		if idles && len(in.buf) == smallInput && leaving.Load() == 0 {
			return errIdle
		}
	}
}

// watch sets or removes the deadline that ends the time of the large buffer, and of the goroutine if the connection
// idles.
func (in *input) watch(now time.Time, idles bool) error {
	switch keeps := len(in.buf) == smallInput && !idles; {
	case keeps && in.until.IsZero():
		return nil
	case keeps:
		in.until = time.Time{}
	case in.until.Sub(now) > busyFor/2:
		return nil
	default:
		in.until = now.Add(busyFor)
	}
	return in.conn.SetReadDeadline(in.until)
}

// release returns the share of partial frames.
func (in *input) release() {
	if in.counted {
		in.counted = false
		in.partial.hold(&in.share, 0)
	}
}

// end returns all buffers; the connection has ended.
func (in *input) end() {
	in.release()
	in.drop()
	in.discard()
}

// rest returns the buffer, which is small, unless bytes wait in it, and removes the deadline.
func (in *input) rest() error {
	if in.have() == 0 {
		in.drop()
		in.discard()
	}
	if in.until.IsZero() {
		return nil
	}
	in.until = time.Time{}
	return in.conn.SetReadDeadline(in.until)
}

// makeRoom makes room in buf after to.
func (in *input) makeRoom() {
	in.findRoom()
	if in.have() > 0 && len(in.buf) > smallInput {
		in.counted = true
		in.partial.hold(&in.share, len(in.buf))
	}
}

func (in *input) findRoom() {
	if in.buf == nil {
		in.buf = smallBuffers.Get().(*[smallInput]byte)[:]
	}
	if in.to == smallInput && len(in.buf) == smallInput {
		in.grow() // full: there is probably more to come
		return
	}
	if in.have() == 0 {
		in.from, in.to = 0, 0
		return
	}
	if in.to < len(in.buf) {
		return
	}
	if in.from > 0 && in.from >= len(in.buf)/2 {
		in.to = copy(in.buf, in.buf[in.from:in.to])
		in.from = 0
		return
	}
	in.grow()
}

// grow moves to a larger buffer. A frame's length is a claim, so the buffer
// never gets more than twice as large as the bytes that have arrived.
func (in *input) grow() {
	waiting := in.buf[in.from:in.to]
	if len(in.buf) < bufferBytes {
		x := in.pool.get()
		in.to = copy(x.b[:bufferBytes], waiting)
		in.drop()
		in.from, in.buf, in.pooled = 0, x.b[:bufferBytes], x
		return
	}
	size := 2 * len(in.buf)
	if claimed, err := wire.CheckFrameLength([4]byte(waiting), in.limit()); err == nil {
		size = min(size, max(bufferBytes, wire.FrameLengthBytes+claimed))
	}
	size = max(size, len(waiting)+1)
	next := make([]byte, size)
	in.to = copy(next, waiting)
	in.from = 0
	in.drop()
	in.buf = next
}

// shrink returns to the small buffer; no bytes wait.
func (in *input) shrink() {
	if len(in.buf) != smallInput {
		in.drop()
		in.discard()
		in.findRoom()
	}
}

// drop gives a pool's buffer back.
func (in *input) drop() {
	switch {
	case in.pooled != nil:
		in.pool.put(in.pooled)
		in.pooled = nil
	case len(in.buf) == smallInput:
		smallBuffers.Put((*[smallInput]byte)(in.buf))
	}
	in.buf = nil
}

// bufferBytes is the room of a pooled buffer: a read or write of a busy
// connection rarely needs more, and one that does gets a buffer of its own.
const bufferBytes = 32 << 10

// buffer is a byte slice that goes through the pool without an allocation.
type buffer struct{ b []byte }

// buffers is the pool of buffers of one Listener. Connections hold one only while
// they have bytes in it, so that idle ones are cheap.
type buffers struct{ pool sync.Pool }

// get returns a buffer without bytes and with room for bufferBytes.
func (p *buffers) get() *buffer {
	if x, ok := p.pool.Get().(*buffer); ok {
		return x
	}
	return &buffer{b: make([]byte, 0, bufferBytes)}
}

// put takes a buffer back. One that has grown is left to the garbage
// collector: a single large reply must not cost memory forever.
func (p *buffers) put(x *buffer) {
	if cap(x.b) <= 2*bufferBytes {
		x.b = x.b[:0]
		p.pool.Put(x)
	}
}
