package raftlog

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

const (
	// blockSize divides everything that is written to a DirectFile. No disk has larger sectors.
	blockSize = 4096
	// maxTail bounds what waits in memory. More comes together only if the disk is far behind; an
	// append then waits for it, as it would for a page cache full of unwritten pages.
	maxTail = 8 << 20
	// newTailBuffer and maxKeptTailBuffer bound the memory that a tail holds on to, twice.
	newTailBuffer     = 64 << 10
	maxKeptTailBuffer = 512 << 10
)

// tail is a file whose end is kept in memory until Datasync writes it past the page cache, durable
// at once. So an append makes no system call, and a sync makes one.
//
// The last block is written again together with what follows it, in place: a power cut leaves each
// of its sectors old or new, and the records that were durable are the same in both. What lies behind
// the last byte written in its block may be cleared: behind the end of a log nothing counts.
//
// One WriteAt may run at a time; the other methods may run beside it and each other.
type tail struct {
	File   // what is on disk
	direct DirectFile

	flight chan struct{} // held while something is written to direct; taken before mu

	mu     sync.Mutex // protects the fields below
	base   int64      // place of bytes in the file, a multiple of blockSize
	bytes  []byte     // aligned in memory; what the file holds from base on, empty if not known
	news   bool       // bytes holds some that no flight has taken
	origin int64      // place of flying
	flying []byte     // what is on its way to the disk, all before bytes or in its first block
	spare  []byte     // of the last flight, to be used again
	err    error      // of the first flight that failed; it is unknown what the disk has of it
}

// openTail makes g's file a tail, if file system and length allow it.
func (s *Store) openTail(g *segment) error {
	if s.opt.NoDirect || g.size%blockSize != 0 {
		return nil
	}
	direct, err := s.fs.OpenDirect(g.path)
	if errors.Is(err, errors.ErrUnsupported) {
		s.logger.Debug("the raft log goes through the page cache", "file", g.path, "reason", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening %s for direct writes: %w", g.path, err)
	}
	g.file = newTail(g.file, direct)
	return nil
}

// newTail owns both files.
func newTail(file File, direct DirectFile) *tail {
	return &tail{File: file, direct: direct, flight: make(chan struct{}, 1)}
}

// WriteAt puts b into memory.
func (t *tail) WriteAt(b []byte, off int64) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.bytes) > maxTail {
		t.mu.Unlock()
		_ = t.Datasync() // its error is kept
		t.mu.Lock()
	}
	if off < t.base {
		// An append that was taken back leaves the end before what a flight has taken.
		t.mu.Unlock()
		acquire(t.flight)
		defer release(t.flight)
		t.mu.Lock()
	}
	if t.err != nil {
		return 0, t.err
	}
	if err := t.reach(off); err != nil {
		return 0, err
	}
	from := off - t.base
	to := from + int64(len(b))
	t.growTo(to)
	copy(t.bytes[from:], b)
	t.news = true
	return len(b), nil
}

// reach makes off a place in bytes, or its end, by reading from the file what lies between: what is in
// memory stays in one piece. If off lies before base, the caller holds flight.
func (t *tail) reach(off int64) error {
	block := off &^ (blockSize - 1)
	if len(t.bytes) == 0 && t.flying == nil {
		t.base = block
	}
	if block < t.base {
		b := alignedBuffer(t.base - block + int64(len(t.bytes)))[:t.base-block]
		if err := readFull(t.File, b, block); err != nil {
			return err
		}
		t.base, t.bytes = block, append(b, t.bytes...)
	}
	if have := int64(len(t.bytes)); off > t.base+have {
		t.growTo(off - t.base)
		if err := readFull(t.File, t.bytes[have:], t.base+have); err != nil {
			t.bytes = t.bytes[:have]
			return err
		}
	}
	return nil
}

// growTo makes bytes at least n long, with room for a whole last block.
func (t *tail) growTo(n int64) {
	if whole := roundUp(n); whole > int64(cap(t.bytes)) {
		t.bytes = append(alignedBuffer(max(2*whole, newTailBuffer)), t.bytes...)
	}
	t.bytes = t.bytes[:max(n, int64(len(t.bytes)))]
}

// ReadAt reads what is in memory from there, the rest from the file.
func (t *tail) ReadAt(b []byte, off int64) (int, error) {
	end := off + int64(len(b))
	t.mu.Lock()
	first, last := t.base, t.base+int64(len(t.bytes))
	if t.flying != nil {
		first = t.origin
		overlay(b, off, t.flying, t.origin)
	}
	overlay(b, off, t.bytes, t.base)
	t.mu.Unlock()
	// What lies before first was on the disk by then.
	if first == last || end <= first || last <= off {
		return t.File.ReadAt(b, off)
	}
	if off < first {
		if n, err := t.File.ReadAt(b[:first-off], off); err != nil {
			return n, err
		}
	}
	if last < end {
		n, err := t.File.ReadAt(b[last-off:], last)
		return int(last-off) + n, err
	}
	return len(b), nil
}

// overlay copies to b, which stands for the file from off on, what src has of it from at on.
func overlay(b []byte, off int64, src []byte, at int64) {
	from, to := max(off, at), min(off+int64(len(b)), at+int64(len(src)))
	if from < to {
		copy(b[from-off:to-off], src[from-at:])
	}
}

// Datasync makes durable all that was written before the call. After an error every call returns it,
// and WriteAt too.
func (t *tail) Datasync() error {
	acquire(t.flight)
	defer release(t.flight)
	b, at, err := t.depart()
	if err != nil || b == nil {
		return err
	}
	return t.arrive(t.direct.WriteDurable(b, at))
}

// depart takes what is to be written. The last block stays too if more can come into it: the disk
// must not read memory that changes.
func (t *tail) depart() (b []byte, at int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || !t.news {
		return nil, 0, t.err
	}
	n := int64(len(t.bytes))
	whole := n &^ (blockSize - 1)
	t.flying, t.origin = t.bytes[:roundUp(n)], t.base
	clear(t.flying[n:])
	next := t.spare
	if next == nil {
		next = alignedBuffer(newTailBuffer)
	}
	t.base += whole
	t.bytes = append(next, t.flying[whole:n]...)
	t.spare, t.news = nil, false
	return t.flying, t.origin, nil
}

// arrive notes that the flight ended with err. After a failure its bytes stay to be read.
func (t *tail) arrive(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = err
		return err
	}
	if cap(t.flying) <= maxKeptTailBuffer {
		t.spare = t.flying[:0]
	}
	t.flying = nil
	return nil
}

// rest gives memory back until the next write.
func (t *tail) rest() {
	acquire(t.flight)
	defer release(t.flight)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.news {
		t.bytes, t.spare = nil, nil
	}
}

// Sync makes content and metadata durable.
func (t *tail) Sync() error { return errors.Join(t.Datasync(), t.File.Sync()) }

// Close closes both files.
func (t *tail) Close() error { return errors.Join(t.direct.Close(), t.File.Close()) }

func roundUp(n int64) int64 { return (n + blockSize - 1) &^ (blockSize - 1) }

// alignedBuffer returns an empty slice with room for n bytes, rounded up, whose memory begins at a
// multiple of blockSize, as direct writes want it.
func alignedBuffer(n int64) []byte {
	n = roundUp(n)
	b := make([]byte, n+blockSize)
	skip := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (blockSize - 1)
	return b[skip : skip : skip+n]
}
