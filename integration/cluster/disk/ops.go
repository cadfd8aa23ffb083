package disk

import (
	"maps"
	"slices"
	"syscall"
)

// The bit of a setattr request that says that a length is given, and that of a mode.
const (
	setMode = 1 << 0
	setSize = 1 << 3
)

// openReply has no handle of ours: nodes are enough. What the kernel has cached is dropped
// at every open.
func openReply() []byte { return make([]byte, 16) }

// handle answers a request.
func (d *Disk) handle(r *request) ([]byte, syscall.Errno) {
	d.mu.Lock()
	n := d.byID[r.node]
	d.mu.Unlock()
	if n == nil {
		if r.op == opRelease || r.op == opReleaseDir || r.op == opDestroy {
			return nil, 0
		}
		return nil, syscall.ESTALE
	}
	switch r.op {
	case opWrite:
		return d.write(n, r)
	case opFsync:
		return nil, d.sync(n)
	case opFsyncDir:
		return nil, d.syncDir(n)
	case opCreate, opMkdir, opUnlink, opRmdir, opRename, opRename2:
		if code := d.ask(OpName, n); code != 0 {
			return nil, code
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.op {
	case opCreate, opMkdir, opUnlink, opRmdir, opRename, opRename2:
		return d.nameLocked(n, r)
	}
	return d.lookLocked(n, r)
}

// lookLocked answers what changes no names.
func (d *Disk) lookLocked(n *node, r *request) ([]byte, syscall.Errno) {
	switch r.op {
	case opLookup:
		found, code := d.lookupLocked(n, r.names(0)[0])
		if code != 0 {
			return nil, code
		}
		return d.knowLocked(found).entryReply(), 0
	case opGetAttr:
		return n.attrReply(), 0
	case opSetAttr:
		if r.u32(0)&setMode != 0 {
			n.mode = r.u32(68) & 0o777
		}
		if r.u32(0)&setSize != 0 {
			n.truncate(int64(r.u64(16)))
		}
		return n.attrReply(), 0
	case opOpen, opOpenDir:
		return openReply(), 0
	case opRead:
		return n.read(int64(r.u64(8)), int64(r.u32(16))), 0
	case opReadDir:
		return n.list(int(r.u64(8)), int(r.u32(16))), 0
	case opRelease, opReleaseDir, opDestroy:
		return nil, 0
	case opStatFS:
		return statFS(), 0
	}
	return nil, syscall.ENOSYS
}

// list is a part of a directory's entries, from a number.
func (n *node) list(from, size int) (b []byte) {
	all := slices.Sorted(maps.Keys(n.names))
	for i := from; i < len(all); i++ {
		name, kind := all[i], uint32(syscall.DT_REG)
		if n.names[name].dir {
			kind = syscall.DT_DIR
		}
		const header, align = 24, 8
		length := (header + len(name) + align - 1) / align * align
		if len(b)+length > size {
			break
		}
		begin := len(b)
		b = order.AppendUint64(b, uint64(1)) // not 0, else readers take it for a gap
		b = order.AppendUint64(b, uint64(i+1))
		b = order.AppendUint32(b, uint32(len(name)))
		b = order.AppendUint32(b, kind)
		b = append(b, name...)
		b = append(b, make([]byte, begin+length-len(b))...)
	}
	return b
}

// statFS tells of a large disk.
func statFS() []byte {
	const blocks = 1 << 28
	var b []byte
	for range 5 {
		b = order.AppendUint64(b, blocks)
	}
	b = order.AppendUint32(b, pageSize)
	b = order.AppendUint32(b, syscall.NAME_MAX)
	b = order.AppendUint32(b, pageSize)
	return append(b, make([]byte, 28)...)
}

// nameLocked creates, removes and renames.
func (d *Disk) nameLocked(dir *node, r *request) ([]byte, syscall.Errno) {
	switch r.op {
	case opCreate, opMkdir:
		return d.createLocked(dir, r)
	case opUnlink, opRmdir:
		name := r.names(0)[0]
		n, code := d.lookupLocked(dir, name)
		if code == 0 && n.dir && len(n.names) > 0 {
			code = syscall.ENOTEMPTY
		}
		if code == 0 {
			d.changeLocked(change{dir: dir, name: name})
		}
		return nil, code
	}
	begin := 8
	if r.op == opRename2 {
		if begin = 16; r.u32(8) != 0 {
			return nil, syscall.EINVAL // exchanges, which nobody asks for
		}
	}
	names, to := r.names(begin), d.byID[r.u64(0)]
	if to == nil {
		return nil, syscall.ESTALE
	}
	n, code := d.lookupLocked(dir, names[0])
	if code != 0 {
		return nil, code
	}
	if old := to.names[names[1]]; old != nil && old.dir && len(old.names) > 0 {
		return nil, syscall.ENOTEMPTY
	}
	d.changeLocked(change{dir: to, name: names[1], node: n, fromDir: dir, from: names[0]})
	return nil, 0
}

func (d *Disk) createLocked(dir *node, r *request) ([]byte, syscall.Errno) {
	isDir := r.op == opMkdir
	begin, mode := 16, 4 // of the name, and of the mode
	if isDir {
		begin, mode = 8, 0
	}
	name := r.names(begin)[0]
	if dir.names[name] != nil {
		return nil, syscall.EEXIST
	}
	n := newNode(isDir, r.u32(mode))
	d.changeLocked(change{dir: dir, name: name, node: n})
	reply := d.knowLocked(n).entryReply()
	if !isDir {
		reply = append(reply, openReply()...)
	}
	return reply, 0
}

func (d *Disk) write(n *node, r *request) ([]byte, syscall.Errno) {
	const header = 40
	if code := d.ask(OpWrite, n); code != 0 {
		return nil, code
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b := r.body[header:]
	if len(b) > 0 {
		first, last := n.write(b, int64(r.u64(8)))
		if !d.lying && d.rng.IntN(writebackOdds) == 0 {
			n.flush(first + d.rng.Int64N(last-first+1))
		}
	}
	d.counts.Writes++
	return order.AppendUint64(nil, uint64(len(b))), 0
}

// sync brings to the disk what was written before the call, which is all that is promised
// and so all that it gives.
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
		// The kernel gives such pages up: they count as clean.
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
