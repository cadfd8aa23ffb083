package faultfs

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

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

// SetFault sets the function that is called before every operation; nil means no faults.
func (f *FS) SetFault(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// SetDirect lets OpenDirect succeed; a new file system refuses it.
func (f *FS) SetDirect(direct bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.direct = direct
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

// Used returns the sum of all file lengths in bytes.
func (f *FS) Used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.usedLocked()
}

func (f *FS) usedLocked() int64 {
	var sum int64
	for _, n := range f.names {
		sum += int64(len(n.data))
	}
	return sum
}

// Ops returns the number of operations so far.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// Files returns the names of all files, sorted.
func (f *FS) Files() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return sortedNames(f.names)
}

// ReadFile returns a copy of a file's content as programs see it, nil if there is no such file.
func (f *FS) ReadFile(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.names[name]; ok {
		return slices.Clone(n.data)
	}
	return nil
}

// Damage changes a file's content, on the disk too; change may work in place. It panics if there is
// no such file, which is a mistake in the test.
func (f *FS) Damage(name string, change func([]byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.names[name]
	if !ok {
		panic(fmt.Sprintf("faultfs: no file %q to damage", name))
	}
	n.data = change(n.data)
	n.disk = slices.Clone(n.data)
	n.dirty = map[int64]bool{}
}

// Lose removes a file, on the disk too.
func (f *FS) Lose(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.names, name)
	delete(f.disk, name)
	f.pending = slices.DeleteFunc(f.pending, func(c nameChange) bool { return c.name == name })
}

// Clone returns a copy with everything on the disk, no faults set and no locks held: the
// state that a killed process leaves.
func (f *FS) Clone(seed uint64) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := New(seed, int(f.pageSize))
	for name, n := range f.names {
		c.names[name] = &inode{
			data: slices.Clone(n.data), disk: slices.Clone(n.data), dirty: map[int64]bool{},
		}
	}
	c.direct = f.direct
	c.disk = maps.Clone(c.names)
	return c
}
