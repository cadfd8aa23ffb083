package zk

import "sync"

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
// collector: a single large reply must not cost memory for ever.
func (p *buffers) put(x *buffer) {
	if cap(x.b) <= 2*bufferBytes {
		x.b = x.b[:0]
		p.pool.Put(x)
	}
}
