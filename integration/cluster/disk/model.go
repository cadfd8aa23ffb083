package disk

import (
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// pageSize is the granularity at which unsynced content survives a power cut.
const pageSize = 4096

// writebackOdds: the kernel writes a page back of its own accord once in this many writes.
const writebackOdds = 8

// page is the content of one page. It is never changed once a node has it, so that what
// programs see and what is on the disk can share it.
type page = *[pageSize]byte

// content is the content of a file. A missing page is zeros, as most of a server's log is.
type content struct {
	size  int64
	pages map[int64]page
}

func (c *content) set(at int64, p page) {
	if p == nil {
		delete(c.pages, at)
	} else {
		c.pages[at] = p
	}
}

// resize cuts or extends with zeros.
func (c *content) resize(size int64) {
	if size < c.size {
		for at := range c.pages {
			if at*pageSize >= size {
				delete(c.pages, at)
			}
		}
		if p := c.pages[size/pageSize]; p != nil {
			short := *p
			clear(short[size%pageSize:])
			c.pages[size/pageSize] = &short
		}
	}
	c.size = size
}

// node is a file or a directory. All nodes are protected by Disk.mu.
type node struct {
	id      uint64 // its name towards the kernel; a new one in every life
	lookups uint64 // how often the kernel has looked it up
	dir     bool
	mode    uint32 // permissions

	// Where it was last, for Faults.
	parent *node
	name   string

	// Of a file: as programs see it, and as after a power cut.
	data, disk content
	dirty      map[int64]bool // pages in which they differ, or may
	resized    bool           // the length differs, or may

	// Of a directory: the same.
	names, durable map[string]*node
}

func newNode(dir bool, mode uint32) *node {
	n := &node{dir: dir, mode: mode & 0o777}
	if dir {
		n.names, n.durable = map[string]*node{}, map[string]*node{}
	} else {
		n.data.pages, n.disk.pages = map[int64]page{}, map[int64]page{}
		n.dirty = map[int64]bool{}
	}
	return n
}

// path is where it is below the root, or was last.
func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	if n.parent.parent == nil {
		return n.name
	}
	return n.parent.path() + "/" + n.name
}

// read returns up to size bytes at an offset.
func (n *node) read(off, size int64) []byte {
	size = max(0, min(size, n.data.size-off))
	b := make([]byte, size)
	for done := int64(0); done < size; {
		at, from := (off+done)/pageSize, (off+done)%pageSize
		part := min(pageSize-from, size-done)
		if p := n.data.pages[at]; p != nil {
			copy(b[done:done+part], p[from:])
		}
		done += part
	}
	return b
}

// write changes the content that programs see, and returns the pages.
func (n *node) write(b []byte, off int64) (first, last int64) {
	for done := 0; done < len(b); {
		at, from := (off+int64(done))/pageSize, (off+int64(done))%pageSize
		part := min(pageSize-int(from), len(b)-done)
		var p [pageSize]byte
		if old := n.data.pages[at]; old != nil {
			p = *old
		}
		copy(p[from:], b[done:done+part])
		if p == [pageSize]byte{} {
			n.data.set(at, nil)
		} else {
			n.data.set(at, &p)
		}
		n.dirty[at] = true
		done += part
	}
	end := off + int64(len(b))
	if end > n.data.size {
		n.data.size, n.resized = end, true
	}
	return off / pageSize, (end - 1) / pageSize
}

func (n *node) truncate(size int64) {
	if size < n.data.size && size%pageSize != 0 {
		n.dirty[size/pageSize] = true
	}
	n.data.resize(size)
	n.resized = true
}

// flush copies one page to the disk.
func (n *node) flush(at int64) {
	delete(n.dirty, at)
	if at*pageSize >= n.data.size {
		return
	}
	n.disk.set(at, n.data.pages[at])
	n.disk.size = max(n.disk.size, min((at+1)*pageSize, n.data.size))
}

// sync brings pages that were dirty, and the length, to the disk.
func (n *node) sync(pages []int64) {
	if n.resized {
		n.disk.resize(n.data.size)
		n.resized = false
	}
	for _, at := range pages {
		if n.dirty[at] {
			n.flush(at)
		}
	}
}

// cut discards a part of what is not on the disk, and returns how many pages were lost.
func (n *node) cut(rng *rand.Rand, everything bool) (lost int) {
	if n.resized && !everything && rng.IntN(2) == 0 {
		n.disk.resize(n.data.size)
	}
	for at, p := range n.data.pages {
		if !n.dirty[at] && p != n.disk.pages[at] {
			lost++ // given up by a sync that failed
		}
	}
	for _, at := range slices.Sorted(maps.Keys(n.dirty)) {
		if !everything && rng.IntN(2) == 0 {
			n.flush(at)
		} else if n.data.pages[at] != n.disk.pages[at] {
			lost++
		}
	}
	n.data = content{size: n.disk.size, pages: maps.Clone(n.disk.pages)}
	n.dirty, n.resized = map[int64]bool{}, false
	return lost
}

// change sets a name, or removes it if node is nil.
type change struct {
	dir     *node
	name    string
	node    *node
	fromDir *node // of the name that goes at the same moment, nil: none
	from    string
}

// apply makes the change, for programs or on the disk.
func (c change) apply(names func(*node) map[string]*node) {
	if c.fromDir != nil {
		delete(names(c.fromDir), c.from)
	}
	if c.node == nil {
		delete(names(c.dir), c.name)
		return
	}
	names(c.dir)[c.name] = c.node
}

func visible(n *node) map[string]*node { return n.names }
func durable(n *node) map[string]*node { return n.durable }

// changeLocked makes a change of names that programs see.
func (d *Disk) changeLocked(c change) {
	c.apply(visible)
	if c.node != nil {
		c.node.parent, c.node.name = c.dir, c.name
	}
	d.pending = append(d.pending, c)
}

func (d *Disk) lookupLocked(dir *node, name string) (*node, syscall.Errno) {
	if n := dir.names[name]; n != nil {
		return n, 0
	}
	return nil, syscall.ENOENT
}
