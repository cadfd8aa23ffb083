package faultfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

// ErrPowerCut is the error of every operation on files opened before a power cut or a kill, and of
// all operations between that and PowerOn.
var ErrPowerCut = errors.New("faultfs: power cut")

// DefaultPageSize is the granularity at which unsynced content survives a power cut.
const DefaultPageSize = 4096

// writebackOdds is the chance, one in so many writes, that the kernel writes a page back by itself.
const writebackOdds = 8

// Op names an operation for a Fault.
type Op string

// The operations that can fail, be slow, or coincide with a power cut.
const (
	OpWrite   Op = "write"
	OpSync    Op = "sync" // fsync and fdatasync
	OpCreate  Op = "create"
	OpRename  Op = "rename"
	OpRemove  Op = "remove"
	OpSyncDir Op = "syncdir"
)

// Fault decides about an operation on a file before it happens: nil lets it happen. The error of a
// write may be a *ShortWrite. It may block.
type Fault func(op Op, name string) error

// ShortWrite as the error of a write lets that many bytes through before Err.
type ShortWrite struct {
	Bytes int
	Err   error
}

func (e *ShortWrite) Error() string { return fmt.Sprintf("write cut at %d: %v", e.Bytes, e.Err) }

// Unwrap returns the cause.
func (e *ShortWrite) Unwrap() error { return e.Err }

// FS is the file system. The zero value is not usable; see New.
type FS struct {
	pageSize int64

	mu       sync.Mutex // protects the fields below, and all inodes
	rand     *rand.Rand
	names    map[string]*inode // as programs see it
	disk     map[string]*inode // as after a power cut
	pending  []nameChange      // from disk to names
	fault    Fault
	lying    bool
	lied     bool // at some time
	direct   bool
	capacity int64 // 0: unlimited
	cutAfter int   // operations until the power goes; 0: never
	off      bool
	life     int
	locks    map[string]int // name to the life that holds it
	ops      int
}

// nameChange sets a name, or removes it if inode is nil.
type nameChange struct {
	name    string
	inode   *inode
	renamed string // name that is removed at the same time, if any
}

type inode struct {
	data  []byte         // as programs see it
	disk  []byte         // as after a power cut
	dirty map[int64]bool // pages in which they differ, or may
}

// New returns an empty file system with an unlimited disk. pageSize 0 means DefaultPageSize. All
// chance comes from seed.
func New(seed uint64, pageSize int) *FS {
	if pageSize == 0 {
		pageSize = DefaultPageSize
	}
	return &FS{
		pageSize: int64(pageSize), rand: rand.New(rand.NewPCG(seed, 1)),
		names: map[string]*inode{}, disk: map[string]*inode{}, locks: map[string]int{},
	}
}

var _ raftlog.FS = (*FS)(nil)

// SetFault sets the function that is called before every operation; nil means no
// faults.
func (f *FS) SetFault(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// SetLying makes syncs of files return nil and do nothing.
func (f *FS) SetLying(lying bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lying = lying
	f.lied = f.lied || lying
}

// SetCapacity bounds the sum of all file lengths in bytes; 0 means no bound. Writes that need more
// stop short with ENOSPC.
func (f *FS) SetCapacity(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity = bytes
}

// CutAfter cuts the power before the nth operation from now (writes, syncs, changes of names).
// The file system is off until PowerOn.
func (f *FS) CutAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cutAfter = n
}

// PowerCut cuts the power now. The file system is off until PowerOn.
func (f *FS) PowerCut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cutLocked()
}

// Kill ends the process but not the kernel: open files and locks become useless, and unsynced
// writes can still be read, but are not on the disk. Off until PowerOn.
func (f *FS) Kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.life++
	f.off = true
	f.locks = map[string]int{}
}

// Used returns the sum of all file lengths in bytes.
func (f *FS) Used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.usedLocked()
}

// PowerOn turns the file system on again. If it is not off, because CutAfter has not cut the
// power yet, PowerOn cuts it first. The stores from before must be closed by then: their
// operations on names, unlike those on open files, cannot be distinguished from those of the
// new stores.
func (f *FS) PowerOn() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.off {
		f.cutLocked()
	}
	f.off, f.cutAfter = false, 0
}

// Ops returns the number of operations so far.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// cutLocked forgets a random part of what is not on the disk.
func (f *FS) cutLocked() {
	f.life++
	f.off = true
	f.locks = map[string]int{}
	for _, c := range f.pending[:f.rand.IntN(len(f.pending)+1)] {
		c.apply(f.disk)
	}
	f.pending = nil
	// Names in order, so that the seed decides.
	for _, name := range sortedNames(f.disk) {
		f.disk[name].cut(f)
	}
	f.names = map[string]*inode{}
	for name, n := range f.disk {
		f.names[name] = n
	}
}

func (n *inode) cut(f *FS) {
	pages := make([]int64, 0, len(n.dirty))
	for p := range n.dirty {
		pages = append(pages, p)
	}
	slices.Sort(pages)
	for _, p := range pages {
		if f.rand.IntN(2) == 0 {
			n.flush(p, f.pageSize)
		}
	}
	n.data = slices.Clone(n.disk)
	n.dirty = map[int64]bool{}
}

// flush copies one page to the disk.
func (n *inode) flush(p, pageSize int64) {
	delete(n.dirty, p)
	lo, hi := p*pageSize, min((p+1)*pageSize, int64(len(n.data)))
	if lo >= hi {
		return
	}
	if int64(len(n.disk)) < hi {
		n.disk = append(n.disk, make([]byte, hi-int64(len(n.disk)))...)
	}
	copy(n.disk[lo:hi], n.data[lo:hi])
}

func sortedNames(m map[string]*inode) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c nameChange) apply(m map[string]*inode) {
	if c.renamed != "" {
		delete(m, c.renamed)
	}
	if c.inode == nil {
		delete(m, c.name)
	} else {
		m[c.name] = c.inode
	}
}

// before counts an operation, asks the fault function and notices power cuts. life is that of the
// caller's handle, or -1 for an operation on names.
func (f *FS) before(op Op, name string, life int) error {
	f.mu.Lock()
	f.ops++
	if f.cutAfter > 0 {
		if f.cutAfter--; f.cutAfter == 0 {
			f.cutLocked()
		}
	}
	fault := f.fault
	gone := f.off || life >= 0 && life != f.life
	if life < 0 {
		life = f.life
	}
	f.mu.Unlock()
	if gone {
		return ErrPowerCut
	}
	var err error
	if fault != nil {
		err = fault(op, name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off || life != f.life {
		return ErrPowerCut // the power was cut while the fault function waited
	}
	return err
}

func (f *FS) changeLocked(c nameChange) {
	c.apply(f.names)
	f.pending = append(f.pending, c)
}

// MkdirAll implements raftlog.FS. Directories exist by themselves.
func (f *FS) MkdirAll(string) error { return nil }

// Create implements raftlog.FS.
func (f *FS) Create(name string) (raftlog.File, error) {
	if err := f.before(OpCreate, name, -1); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &inode{dirty: map[int64]bool{}}
	f.changeLocked(nameChange{name: name, inode: n})
	return &file{fs: f, inode: n, name: name, life: f.life}, nil
}

// Open implements raftlog.FS.
func (f *FS) Open(name string) (raftlog.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, err := f.openLocked(name)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (f *FS) openLocked(name string) (*file, error) {
	n, ok := f.names[name]
	switch {
	case f.off:
		return nil, ErrPowerCut
	case !ok:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{fs: f, inode: n, name: name, life: f.life}, nil
}

// Rename implements raftlog.FS.
func (f *FS) Rename(oldName, newName string) error {
	if err := f.before(OpRename, newName, -1); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.names[oldName]
	if !ok {
		return &fs.PathError{Op: "rename", Path: oldName, Err: fs.ErrNotExist}
	}
	f.changeLocked(nameChange{name: newName, inode: n, renamed: oldName})
	return nil
}

// Remove implements raftlog.FS.
func (f *FS) Remove(name string) error {
	if err := f.before(OpRemove, name, -1); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.names[name]; !ok {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	f.changeLocked(nameChange{name: name})
	return nil
}

// List implements raftlog.FS.
func (f *FS) List(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off {
		return nil, ErrPowerCut
	}
	var names []string
	for _, name := range sortedNames(f.names) {
		if filepath.Dir(name) == filepath.Clean(dir) {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

// SyncDir implements raftlog.FS. Like a journal, it makes all directory changes durable.
func (f *FS) SyncDir(dir string) error {
	if err := f.before(OpSyncDir, dir, -1); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lying {
		return nil
	}
	for _, c := range f.pending {
		c.apply(f.disk)
	}
	f.pending = nil
	return nil
}

// Lock implements raftlog.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off {
		return nil, ErrPowerCut
	}
	if _, held := f.locks[name]; held {
		return nil, fmt.Errorf("faultfs: %s: %w", name, syscall.EWOULDBLOCK)
	}
	f.locks[name] = f.life
	return &fileLock{fs: f, name: name, life: f.life}, nil
}

type fileLock struct {
	fs   *FS
	name string
	life int
}

func (l *fileLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.fs.locks[l.name] == l.life && l.fs.life == l.life {
		delete(l.fs.locks, l.name)
	}
	return nil
}
