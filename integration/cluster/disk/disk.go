package disk

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// Op names an operation for a Fault.
type Op string

// The operations that can fail or be slow.
const (
	OpWrite   Op = "write"
	OpSync    Op = "sync" // fsync and fdatasync of a file
	OpSyncDir Op = "syncdir"
	OpName    Op = "name" // creating, renaming, removing
)

// Fault decides about an operation on a file, named by its path below the disk's root, before
// it happens: 0 permits it. It may block, which the server sees as a slow disk.
type Fault func(op Op, path string) syscall.Errno

// Loss is the loss of a power cut.
type Loss struct {
	Pages int // pages whose content was newer than the disk's
	Names int // changes of names
}

// Counts counts the operations of a Disk.
type Counts struct {
	Writes, Syncs, FailedSyncs, Lies, Cuts, LostPages, LostNames int
}

// Add adds those of another disk.
func (c *Counts) Add(o Counts) {
	c.Writes += o.Writes
	c.Syncs += o.Syncs
	c.FailedSyncs += o.FailedSyncs
	c.Lies += o.Lies
	c.Cuts += o.Cuts
	c.LostPages += o.LostPages
	c.LostNames += o.LostNames
}

// Disk is one disk. See the package comment for what it models.
type Disk struct {
	dir  string // where it is mounted
	ext4 *ext4  // on this disk, nil: none

	mu      sync.Mutex // protects the fields below
	rng     *rand.Rand
	root    *node
	byID    map[uint64]*node
	lastID  uint64
	pending []change // changes that programs see and that are not on the disk yet
	fault   Fault
	lying   bool
	counts  Counts
}

// New mounts an empty disk, which ends with the test. All chance comes from seed. It needs
// root and /dev/fuse, and fails the test where the system does not permit it.
func New(t testing.TB, seed uint64) *Disk {
	t.Helper()
	d := &Disk{dir: t.TempDir(), rng: rand.New(rand.NewPCG(seed, 3)), root: newNode(true, 0o755)}
	d.nameAllLocked()
	if err := d.mount(); err != nil {
		t.Fatalf("a disk of the test's own: %v; this needs root and /dev/fuse", err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Errorf("unmounting a disk: %v", err)
		}
	})
	return d
}

// Dir is where the disk is mounted, or the file system on it.
func (d *Disk) Dir() string {
	if d.ext4 != nil {
		return d.ext4.dir
	}
	return d.dir
}

// SetFault sets the function that is called before every operation; nil means no faults.
func (d *Disk) SetFault(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// SetLying makes syncs succeed and do nothing, and the kernel write nothing back. Everything
// written while a disk lied is lost with the next PowerCut, unless Settle comes first.
func (d *Disk) SetLying(lying bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lying = lying
}

// Settle brings everything to the disk.
func (d *Disk) Settle() {
	if d.ext4 != nil {
		_, _ = run("sync", "-f", d.ext4.dir) // the next cut takes what it could not write
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commitNamesLocked(len(d.pending))
	d.walkLocked(d.root, func(n *node) {
		if !n.dir {
			n.sync(slices.Collect(maps.Keys(n.dirty)))
		}
	})
}

// PowerOff takes the power from a disk with an ext4 while its processes run, which then meet
// errors; PowerCut gives it back. Without an ext4 it does nothing: the next PowerCut discards
// what is unsynced when the processes have ended.
func (d *Disk) PowerOff() {
	if d.ext4 != nil {
		d.ext4.powerOff()
	}
}

// PowerCut discards what is not on the disk, or a part of it. Its processes must have ended. It
// returns the error of mounting an ext4 again.
func (d *Disk) PowerCut() (Loss, error) {
	if d.ext4 != nil {
		return d.ext4.cut(d)
	}
	return d.cut(), nil
}

func (d *Disk) cut() (l Loss) {
	d.mu.Lock()
	defer d.mu.Unlock()
	keep := 0
	if !d.lying {
		keep = d.rng.IntN(len(d.pending) + 1)
	}
	l.Names = len(d.pending) - keep
	d.commitNamesLocked(keep)
	d.pending = nil
	d.restoreLocked(d.root)
	d.walkLocked(d.root, func(n *node) {
		if !n.dir {
			l.Pages += n.cut(d.rng, d.lying)
		}
	})
	d.nameAllLocked()
	d.counts.Cuts++
	d.counts.LostPages += l.Pages
	d.counts.LostNames += l.Names
	return l
}

// Counts returns the counts so far.
func (d *Disk) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

func (d *Disk) commitNamesLocked(n int) {
	for _, c := range d.pending[:n] {
		c.apply(durable)
	}
	d.pending = d.pending[n:]
}

// restoreLocked shows programs the names that are on the disk.
func (d *Disk) restoreLocked(dir *node) {
	dir.names = maps.Clone(dir.durable)
	for name, n := range dir.names {
		n.parent, n.name = dir, name
		if n.dir {
			d.restoreLocked(n)
		}
	}
}

// walkLocked visits a node and all below, in an order that the seed repeats.
func (d *Disk) walkLocked(n *node, visit func(*node)) {
	visit(n)
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		d.walkLocked(n.names[name], visit)
	}
}

// rootID is the kernel's name of the root.
const rootID = 1

// nameAllLocked gives all nodes new names towards the kernel, so that it confuses nothing of an
// earlier life with the present.
func (d *Disk) nameAllLocked() {
	d.byID = map[uint64]*node{}
	d.lastID = max(d.lastID, rootID)
	d.walkLocked(d.root, func(n *node) { n.id, n.lookups = 0, 0 })
	d.root.id = rootID
	d.byID[rootID] = d.root
}

// knowLocked notes that the kernel knows a node.
func (d *Disk) knowLocked(n *node) {
	if n.id == 0 {
		d.lastID++
		n.id = d.lastID
		d.byID[n.id] = n
	}
	n.lookups++
}

// forgetLocked notes that the kernel no longer uses a node.
func (d *Disk) forgetLocked(id, lookups uint64) {
	n := d.byID[id]
	if n == nil || id == rootID {
		return
	}
	n.lookups -= min(lookups, n.lookups)
	if n.lookups == 0 {
		delete(d.byID, id)
		n.id = 0
	}
}

// ask asks the fault function, without locks.
func (d *Disk) ask(op Op, n *node) syscall.Errno {
	d.mu.Lock()
	fault, path := d.fault, n.path()
	d.mu.Unlock()
	if fault == nil {
		return 0
	}
	return fault(op, path)
}

// removeLocked removes a name.
func (d *Disk) removeLocked(dir *node, name string) syscall.Errno {
	n, code := d.lookupLocked(dir, name)
	if code != 0 {
		return code
	}
	if n.dir && len(n.names) > 0 {
		return syscall.ENOTEMPTY
	}
	d.changeLocked(change{dir: dir, name: name})
	return 0
}

// renameLocked gives a node another name, which may be another node's.
func (d *Disk) renameLocked(dir *node, from string, to *node, name string) syscall.Errno {
	n, code := d.lookupLocked(dir, from)
	if code != 0 {
		return code
	}
	if old := to.names[name]; old != nil && old.dir && len(old.names) > 0 {
		return syscall.ENOTEMPTY
	}
	d.changeLocked(change{dir: to, name: name, node: n, fromDir: dir, from: from})
	return 0
}

func (d *Disk) write(n *node, b []byte, off int64) syscall.Errno {
	if code := d.ask(OpWrite, n); code != 0 {
		return code
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(b) > 0 {
		first, last := n.write(b, off)
		if !d.lying && d.rng.IntN(writebackOdds) == 0 {
			n.flush(first + d.rng.Int64N(last-first+1))
		}
	}
	d.counts.Writes++
	return 0
}

// sync brings everything written before the call to the disk, which is all that is promised and
// so all that it does.
func (d *Disk) sync(n *node) syscall.Errno {
	d.mu.Lock()
	pages := slices.Sorted(maps.Keys(n.dirty))
	d.mu.Unlock()
	code := d.ask(OpSync, n)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Syncs++
	switch {
	case code != 0:
		// The kernel gives up such pages: they count as clean.
		for _, at := range pages {
			delete(n.dirty, at)
		}
		d.counts.FailedSyncs++
	case d.lying:
		d.counts.Lies++
	default:
		n.sync(pages)
	}
	return code
}

func (d *Disk) syncDir(n *node) syscall.Errno {
	code := d.ask(OpSyncDir, n)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case code != 0:
	case d.lying:
		d.counts.Lies++
	default:
		d.commitNamesLocked(len(d.pending))
	}
	return code
}

// Slow is a Fault that makes every sync take longer. The seed determines those that take
// longest.
func Slow(p slowdisk.Profile, seed uint64) Fault {
	var mu sync.Mutex // protects rng
	rng := rand.New(rand.NewPCG(seed, 4))
	return func(op Op, _ string) syscall.Errno {
		if op != OpSync && op != OpSyncDir {
			return 0
		}
		mu.Lock()
		delay := p.Draw(rng)
		mu.Unlock()
		<-time.After(delay)
		return 0
	}
}
