package raftlog

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	// blockSize divides the offset and length of every write to a DirectFile. No disk has
	// larger sectors.
	blockSize = 4096
	// maxUnwritten bounds the unwritten bytes in memory. More gather only if the disk lags far behind;
	// an append then waits for it, as it would for a page cache full of unwritten pages.
	maxUnwritten = 8 << 20
	// newWriteBuffer and maxKeptWriteBuffer bound the memory that a directWriter keeps, twice.
	newWriteBuffer     = 64 << 10
	maxKeptWriteBuffer = 512 << 10
)

// directWriter is a file whose end is kept in memory until Datasync writes it past the page cache, durable
// at once. So an append makes no system call, and a sync makes one.
//
// The last block is written again together with what follows it, in place: a power cut leaves each
// of its sectors old or new, and the records that were durable are the same in both. The rest of
// the block after the last byte written may be cleared: after the end of a log nothing counts.
//
// One WriteAt may run at a time; the other methods may run beside it and each other.
type directWriter struct {
	File   // what is on disk
	direct DirectFile
	park   *atomic.Bool // the directory's, for direct

	writing chan struct{} // held while something is written to direct; taken before mu

	mu        sync.Mutex // protects the fields below
	base      int64      // place of bytes in the file, a multiple of blockSize
	bytes     []byte     // aligned in memory; what the file holds from base on, empty if not known
	unwritten bool       // bytes has some that no write has taken
	inWriteAt int64      // place of inWrite
	inWrite   []byte     // being written to the disk, all before bytes or in its first block
	reuse     []byte     // buffer of the last write, to reuse
	err       error      // of the first failed write; how much of it the disk has is unknown
}

// newDirectWriter owns both files.
func newDirectWriter(file File, direct DirectFile, park *atomic.Bool) *directWriter {
	return &directWriter{File: file, direct: direct, park: park, writing: make(chan struct{}, 1)}
}

// WriteAt puts b into memory.
func (w *directWriter) WriteAt(b []byte, off int64) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.bytes) > maxUnwritten {
		w.mu.Unlock()
		_ = w.Datasync() // it keeps its error
		w.mu.Lock()
	}
	if off < w.base {
		// An undone append leaves the end before the bytes that a write has taken.
		w.mu.Unlock()
		acquire(w.writing)
		defer release(w.writing)
		w.mu.Lock()
	}
	if w.err != nil {
		return 0, w.err
	}
	if err := w.extendTo(off); err != nil {
		return 0, err
	}
	from := off - w.base
	to := from + int64(len(b))
	w.growTo(to)
	copy(w.bytes[from:], b)
	w.unwritten = true
	return len(b), nil
}

// extendTo makes off a position in bytes, or its end. It reads what is between from the file, so that the
// bytes in memory stay contiguous. If off is before base, the caller holds writing.
func (w *directWriter) extendTo(off int64) error {
	block := off &^ (blockSize - 1)
	if len(w.bytes) == 0 && w.inWrite == nil {
		w.base = block
	}
	if block < w.base {
		b := alignedBuffer(w.base - block + int64(len(w.bytes)))[:w.base-block]
		if err := readFull(w.File, b, block); err != nil {
			return err
		}
		w.base, w.bytes = block, append(b, w.bytes...)
	}
	if have := int64(len(w.bytes)); off > w.base+have {
		w.growTo(off - w.base)
		if err := readFull(w.File, w.bytes[have:], w.base+have); err != nil {
			w.bytes = w.bytes[:have]
			return err
		}
	}
	return nil
}

// growTo makes bytes at least n long, with room for a whole last block.
func (w *directWriter) growTo(n int64) {
	if whole := roundUp(n); whole > int64(cap(w.bytes)) {
		w.bytes = append(alignedBuffer(max(2*whole, newWriteBuffer)), w.bytes...)
	}
	w.bytes = w.bytes[:max(n, int64(len(w.bytes)))]
}

// ReadAt reads from memory where possible, and the rest from the file.
func (w *directWriter) ReadAt(b []byte, off int64) (int, error) {
	end := off + int64(len(b))
	w.mu.Lock()
	first, last := w.base, w.base+int64(len(w.bytes))
	if w.inWrite != nil {
		first = w.inWriteAt
		overlay(b, off, w.inWrite, w.inWriteAt)
	}
	overlay(b, off, w.bytes, w.base)
	w.mu.Unlock()
	// The bytes before first were on the disk by then.
	if first == last || end <= first || last <= off {
		return w.File.ReadAt(b, off)
	}
	if off < first {
		if n, err := w.File.ReadAt(b[:first-off], off); err != nil {
			return n, err
		}
	}
	if last < end {
		n, err := w.File.ReadAt(b[last-off:], last)
		return int(last-off) + n, err
	}
	return len(b), nil
}

// overlay copies bytes of a file from src, which has those from at on, to b, which gets those from off on.
func overlay(b []byte, off int64, src []byte, at int64) {
	from, to := max(off, at), min(off+int64(len(b)), at+int64(len(src)))
	if from < to {
		copy(b[from-off:to-off], src[from-at:])
	}
}

// Datasync makes all bytes durable that were written before the call. After an error, every later call and
// WriteAt return that error.
func (w *directWriter) Datasync() error {
	acquire(w.writing)
	defer release(w.writing)
	b, at, err := w.startWrite()
	if err != nil || b == nil {
		return err
	}
	w.direct.Park(w.park.Load())
	return w.finishWrite(w.direct.WriteDurable(b, at))
}

// startWrite takes the bytes to write. It copies a last block that is not full, because the disk must
// not read memory that changes.
func (w *directWriter) startWrite() (b []byte, at int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || !w.unwritten {
		return nil, 0, w.err
	}
	n := int64(len(w.bytes))
	whole := n &^ (blockSize - 1)
	w.inWrite, w.inWriteAt = w.bytes[:roundUp(n)], w.base
	clear(w.inWrite[n:])
	next := w.reuse
	if next == nil {
		next = alignedBuffer(newWriteBuffer)
	}
	w.base += whole
	w.bytes = append(next, w.inWrite[whole:n]...)
	w.reuse, w.unwritten = nil, false
	return w.inWrite, w.inWriteAt, nil
}

// finishWrite records that the write ended with err. After a failure its bytes can still be
// read.
func (w *directWriter) finishWrite(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = err
		return err
	}
	if cap(w.inWrite) <= maxKeptWriteBuffer {
		w.reuse = w.inWrite[:0]
	}
	w.inWrite = nil
	return nil
}

// rest gives back memory and what the kernel holds until the next write.
func (w *directWriter) rest() {
	acquire(w.writing)
	defer release(w.writing)
	w.direct.Park(false)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.unwritten {
		w.bytes, w.reuse = nil, nil
	}
}

// Sync makes content and metadata durable.
func (w *directWriter) Sync() error { return errors.Join(w.Datasync(), w.File.Sync()) }

// Close closes both files.
func (w *directWriter) Close() error { return errors.Join(w.direct.Close(), w.File.Close()) }

func roundUp(n int64) int64 { return (n + blockSize - 1) &^ (blockSize - 1) }

// alignedBuffer returns an empty slice with room for n bytes, rounded up, whose memory begins at a
// multiple of blockSize, as direct writes require.
func alignedBuffer(n int64) []byte {
	n = roundUp(n)
	b := make([]byte, n+blockSize)
	skip := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (blockSize - 1)
	return b[skip : skip : skip+n]
}
