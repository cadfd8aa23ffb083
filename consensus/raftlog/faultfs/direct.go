package faultfs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// directBlock divides the offset and length of a direct write.
const directBlock = 4096

// SetDirect lets OpenDirect succeed; a new file system refuses it.
func (f *FS) SetDirect(direct bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.direct = direct
}

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
