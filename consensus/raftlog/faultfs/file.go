package faultfs

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// file is an open file.
type file struct {
	fs    *FS
	inode *inode
	name  string
	life  int
}

// ReadAt implements io.ReaderAt.
func (h *file) ReadAt(b []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.gone() {
		return 0, ErrPowerCut
	}
	if off >= int64(len(h.inode.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.inode.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *file) gone() bool { return h.fs.off || h.life != h.fs.life }

// WriteAt implements io.WriterAt.
func (h *file) WriteAt(b []byte, off int64) (int, error) {
	err := h.fs.before(OpWrite, h.name, h.life)
	var short *ShortWrite
	if errors.As(err, &short) {
		b, err = b[:min(short.Bytes, len(b))], short.Err
	} else if err != nil {
		return 0, err
	}
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.gone() {
		return 0, ErrPowerCut
	}
	n := h.inode
	if grow := off + int64(len(b)) - int64(len(n.data)); f.capacity > 0 && grow > 0 {
		if room := max(f.capacity-f.usedLocked(), 0); grow > room {
			b, err = b[:max(int64(len(b))-(grow-room), 0)], syscall.ENOSPC
		}
	}
	if len(b) == 0 {
		return 0, err
	}
	end := off + int64(len(b))
	if int64(len(n.data)) < end {
		n.data = append(n.data, make([]byte, end-int64(len(n.data)))...)
	}
	copy(n.data[off:], b)
	for p := off / f.pageSize; p*f.pageSize < end; p++ {
		n.dirty[p] = true
	}
	if f.rand.IntN(writebackOdds) == 0 && !f.lying {
		first := off / f.pageSize
		n.flush(first+f.rand.Int64N((end-1)/f.pageSize-first+1), f.pageSize)
	}
	return len(b), err
}

// Size returns the length in bytes.
func (h *file) Size() (int64, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.gone() {
		return 0, ErrPowerCut
	}
	return int64(len(h.inode.data)), nil
}

// Sync copies all pages written before to the disk.
func (h *file) Sync() error {
	// Only what was written before the call is promised, so the slow disk syncs no more.
	h.fs.mu.Lock()
	var pages []int64
	for p := range h.inode.dirty {
		pages = append(pages, p)
	}
	h.fs.mu.Unlock()
	slices.Sort(pages)
	n := h.inode
	return h.sync(pages, func(p int64, err error) {
		if err != nil {
			delete(n.dirty, p)
		} else if n.dirty[p] {
			n.flush(p, h.fs.pageSize)
		}
	})
}

// sync is an OpSync. Unless the power is cut or the disk lies, it calls settle for each page,
// with the file system locked.
func (h *file) sync(pages []int64, settle func(p int64, err error)) error {
	f := h.fs
	err := f.before(OpSync, h.name, h.life)
	if errors.Is(err, ErrPowerCut) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case h.gone():
		return ErrPowerCut
	case f.lying && err == nil:
		return nil
	}
	for _, p := range pages {
		settle(p, err)
	}
	return err
}

// Datasync is Sync: lengths are metadata that reading needs.
func (h *file) Datasync() error { return h.Sync() }

// Close does nothing.
func (h *file) Close() error { return nil }

// directBlock divides the offset and length of a direct write.
const directBlock = 4096

// OpenDirect implements raftlog.FS.
func (f *FS) OpenDirect(name string) (raftlog.DirectFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, err := f.openLocked(name)
	switch {
	case err != nil:
		return nil, err
	case !f.direct:
		return nil, errors.ErrUnsupported
	case len(h.inode.data)%directBlock != 0 || len(h.inode.dirty) > 0 && !f.lied:
		panic(fmt.Sprintf("faultfs: direct writes to %s, of %d bytes, %d pages not synced",
			name, len(h.inode.data), len(h.inode.dirty)))
	}
	return &directFile{*h}, nil
}

type directFile struct{ file }

// Park implements raftlog.DirectFile. There are no threads here.
func (h *directFile) Park(bool) {}

// WriteDurable is one OpSync: that is when it can fail, hang or lose its power. Programs may see any
// of it at once. A write that fails leaves each page old or new, for programs too.
func (h *directFile) WriteDurable(b []byte, off int64) error {
	f, n := h.fs, h.inode
	end := off + int64(len(b))
	f.mu.Lock()
	if h.gone() {
		f.mu.Unlock()
		return ErrPowerCut
	}
	if off%directBlock != 0 || len(b)%directBlock != 0 || end > int64(len(n.data)) {
		f.mu.Unlock()
		panic(fmt.Sprintf("faultfs: a direct write of %d bytes at %d to %s, of %d bytes",
			len(b), off, h.name, len(n.data)))
	}
	before := slices.Clone(n.data[off:end])
	copy(n.data[off:], b)
	var pages []int64
	for p := off / f.pageSize; p*f.pageSize < end; p++ {
		n.dirty[p] = true
		pages = append(pages, p)
	}
	f.mu.Unlock()
	return h.sync(pages, func(p int64, err error) {
		if err != nil && f.rand.IntN(2) == 0 {
			from, to := max(p*f.pageSize, off), min((p+1)*f.pageSize, end)
			copy(n.data[from:to], before[from-off:])
		}
		n.flush(p, f.pageSize)
	})
}
