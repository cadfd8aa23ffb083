package disk

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// mount makes the disk the file system of d.dir.
func (d *Disk) mount() error {
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)
	if err := syscall.Mount("zk-lite-disk", d.dir, "fuse", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return errors.Join(fmt.Errorf("mounting: %w", err), syscall.Close(fd))
	}
	server, err := fuse.NewServer(&files{fuse.NewDefaultRawFileSystem(), d}, fmt.Sprintf("/dev/fd/%d", fd),
		&fuse.MountOptions{MaxBackground: 64, DisableReadDirPlus: true, Logger: log.New(io.Discard, "", 0)})
	if err != nil {
		return errors.Join(fmt.Errorf("serving: %w", err), d.close(), syscall.Close(fd))
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return d.refusePolls()
}

// refusePolls has the kernel ask once whether files can be polled, and answers that they cannot. Go's runtime asks
// when it opens a file, in a way that keeps a processor from this process, which has to answer. The library has a
// file for this, and asks for it only after a mount of its own.
func (d *Disk) refusePolls() error {
	fd, err := syscall.Open(filepath.Join(d.dir, ".go-fuse-epoll-hack"), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a file on the disk: %w", err)
	}
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return errors.Join(err, syscall.Close(fd))
}

// close unmounts. Processes that still have files open, or wait for a fault, meet errors.
func (d *Disk) close() error { return syscall.Unmount(d.dir, syscall.MNT_FORCE|syscall.MNT_DETACH) }

// files answers the kernel's requests, and refuses kinds that servers do not need. Answers are valid for no time:
// the kernel asks again, and drops its cache of a file at every open.
type files struct {
	fuse.RawFileSystem
	d *Disk
}

// node is a node that the kernel knows. ESTALE: it was on the disk before a power cut.
func (f *files) node(id uint64) (*node, fuse.Status) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.nodeLocked(id)
}

func (f *files) nodeLocked(id uint64) (*node, fuse.Status) {
	if n := f.d.byID[id]; n != nil {
		return n, fuse.OK
	}
	return nil, fuse.Status(syscall.ESTALE)
}

// attr is a node as the kernel sees it.
func (n *node) attr(a *fuse.Attr) {
	*a = fuse.Attr{Ino: n.id, Size: uint64(n.data.size), Mode: syscall.S_IFREG | n.mode, Nlink: 1, Blksize: pageSize}
	if n.dir {
		a.Size, a.Mode = pageSize, syscall.S_IFDIR|n.mode
	}
	a.Blocks = (a.Size + 511) / 512
}

// entryLocked describes a node to the kernel.
func (f *files) entryLocked(n *node, out *fuse.EntryOut) {
	f.d.knowLocked(n)
	out.NodeId = n.id
	n.attr(&out.Attr)
}

// Lookup finds a name.
func (f *files) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	dir, status := f.nodeLocked(in.NodeId)
	if status != fuse.OK {
		return status
	}
	n, code := f.d.lookupLocked(dir, name)
	if code == 0 {
		f.entryLocked(n, out)
	}
	return fuse.Status(code)
}

// Forget is called for a node that the kernel no longer uses.
func (f *files) Forget(id, lookups uint64) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.forgetLocked(id, lookups)
}

// GetAttr describes a node.
func (f *files) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, status := f.nodeLocked(in.NodeId)
	if status == fuse.OK {
		n.attr(&out.Attr)
	}
	return status
}

// SetAttr changes permissions and length.
func (f *files) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, status := f.nodeLocked(in.NodeId)
	if status != fuse.OK {
		return status
	}
	if mode, ok := in.GetMode(); ok {
		n.mode = mode & 0o777
	}
	if size, ok := in.GetSize(); ok {
		n.truncate(int64(size))
	}
	n.attr(&out.Attr)
	return fuse.OK
}

// OpenDir needs no handle of ours: nodes are enough.
func (f *files) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.OK }

// ReadDir lists a part of a directory's names, from a number.
func (f *files) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	dir, status := f.nodeLocked(in.NodeId)
	if status != fuse.OK {
		return status
	}
	all := slices.Sorted(maps.Keys(dir.names))
	for i := int(in.Offset); i < len(all); i++ {
		mode := uint32(syscall.S_IFREG)
		if dir.names[all[i]].dir {
			mode = syscall.S_IFDIR
		}
		if !out.AddDirEntry(fuse.DirEntry{Name: all[i], Mode: mode, Ino: 1}) { // not 0, which would be a gap
			break
		}
	}
	return fuse.OK
}

// StatFs reports a large disk.
func (f *files) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	const blocks = 1 << 28
	*out = fuse.StatfsOut{Blocks: blocks, Bfree: blocks, Bavail: blocks, Files: blocks, Ffree: blocks,
		Bsize: pageSize, NameLen: syscall.NAME_MAX, Frsize: pageSize}
	return fuse.OK
}

// Read returns a part of a file.
func (f *files) Read(_ <-chan struct{}, in *fuse.ReadIn, _ []byte) (fuse.ReadResult, fuse.Status) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, status := f.nodeLocked(in.NodeId)
	if status != fuse.OK {
		return nil, status
	}
	return fuse.ReadResultData(n.read(int64(in.Offset), int64(in.Size))), fuse.OK
}

// Write changes the content of a file that programs see.
func (f *files) Write(_ <-chan struct{}, in *fuse.WriteIn, b []byte) (uint32, fuse.Status) {
	n, status := f.node(in.NodeId)
	if status != fuse.OK {
		return 0, status
	}
	return uint32(len(b)), fuse.Status(f.d.write(n, b, int64(in.Offset)))
}

// Fsync is fsync or fdatasync of a file.
func (f *files) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	n, status := f.node(in.NodeId)
	if status != fuse.OK {
		return status
	}
	return fuse.Status(f.d.sync(n))
}

// FsyncDir is that of a directory.
func (f *files) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	n, status := f.node(in.NodeId)
	if status != fuse.OK {
		return status
	}
	return fuse.Status(f.d.syncDir(n))
}

// Create makes a file, and opens it.
func (f *files) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return f.name(in.NodeId, func(dir *node) syscall.Errno {
		return f.createLocked(dir, name, newNode(false, in.Mode), &out.EntryOut)
	})
}

// Mkdir makes a directory.
func (f *files) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.name(in.NodeId, func(dir *node) syscall.Errno {
		return f.createLocked(dir, name, newNode(true, in.Mode), out)
	})
}

func (f *files) createLocked(dir *node, name string, n *node, out *fuse.EntryOut) syscall.Errno {
	if dir.names[name] != nil {
		return syscall.EEXIST
	}
	f.d.changeLocked(change{dir: dir, name: name, node: n})
	f.entryLocked(n, out)
	return 0
}

// Unlink removes a file.
func (f *files) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return f.name(in.NodeId, func(dir *node) syscall.Errno { return f.d.removeLocked(dir, name) })
}

// Rmdir removes a directory.
func (f *files) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return f.name(in.NodeId, func(dir *node) syscall.Errno { return f.d.removeLocked(dir, name) })
}

// Rename moves a file or a directory, also over another one. It refuses exchanges, which no program asks for.
func (f *files) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, name string) fuse.Status {
	if in.Flags != 0 {
		return fuse.EINVAL
	}
	return f.name(in.NodeId, func(dir *node) syscall.Errno {
		to := f.d.byID[in.Newdir]
		if to == nil {
			return syscall.ESTALE
		}
		return f.d.renameLocked(dir, from, to, name)
	})
}

// name calls the fault function, and then changes names of a directory, under the lock.
func (f *files) name(dir uint64, change func(dir *node) syscall.Errno) fuse.Status {
	n, status := f.node(dir)
	if status != fuse.OK {
		return status
	}
	if code := f.d.ask(OpName, n); code != 0 {
		return fuse.Status(code)
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return fuse.Status(change(n))
}
