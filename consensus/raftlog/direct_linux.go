//go:build amd64 || arm64

package raftlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// directFile writes with O_DIRECT and RWF_DSYNC.
type directFile struct {
	file    *os.File
	aio     *aio           // nil: each write blocks its thread
	failed  bool           // there is no aio here
	closing sync.WaitGroup // of former ones
}

// OpenDirect implements FS.
func (osFS) OpenDirect(name string) (DirectFile, error) {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_DIRECT, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil, errors.ErrUnsupported // by a file system without O_DIRECT
	}
	if err != nil {
		return nil, err
	}
	d := &directFile{file: f}
	err = checkFileSystem(f)
	if err == nil {
		dropCache(f)
		err = d.try()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return d, nil
}

// checkFileSystem refuses all file systems but those whose direct, durable writes in place are known to
// keep DirectFile's promises.
func checkFileSystem(f *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return os.NewSyscallError("fstatfs", err)
	}
	if st.Type != unix.EXT4_SUPER_MAGIC && st.Type != unix.XFS_SUPER_MAGIC {
		return fmt.Errorf("file system of type %#x: %w", st.Type, errors.ErrUnsupported)
	}
	return nil
}

// dropCache drops the file from the page cache, because a direct write has to remove cached pages
// first, for which it blocks. It is only advice.
func dropCache(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

// try writes the first block again, unchanged, to check that direct writes work on this
// file.
func (d *directFile) try() error {
	b := alignedBuffer(blockSize)[:blockSize]
	if _, err := d.file.ReadAt(b, 0); err != nil {
		return err
	}
	err := d.WriteDurable(b, 0)
	if refused(err) {
		return fmt.Errorf("%w, %w", err, errors.ErrUnsupported)
	}
	return err
}

// refused reports whether the kernel has refused a call, and written nothing.
func refused(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)
}

// WriteDurable implements DirectFile. A write that would block before the disk has it, for a page in the cache or the
// file system's journal, is made again by a call that blocks.
func (d *directFile) WriteDurable(b []byte, off int64) error {
	if d.aio != nil {
		err := d.aio.write(b, off)
		if refused(err) {
			d.failed = true
			d.Park(false)
		} else if !errors.Is(err, unix.EAGAIN) {
			return err
		}
	}
	for {
		n, err := unix.Pwritev2(int(d.file.Fd()), [][]byte{b}, off, unix.RWF_DSYNC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n != len(b) {
			err = io.ErrShortWrite
		}
		if err != nil {
			err = &os.PathError{Op: "direct write", Path: d.file.Name(), Err: err}
		}
		return err
	}
}

// Park implements DirectFile.
func (d *directFile) Park(park bool) {
	switch {
	case !park && d.aio != nil:
		d.closing.Go(d.aio.close)
		d.aio = nil
	case park && d.aio == nil && !d.failed:
		a, err := newAIO(d.file)
		d.aio, d.failed = a, err != nil
	}
}

// Close implements DirectFile.
func (d *directFile) Close() error {
	d.Park(false)
	d.closing.Wait()
	return d.file.Close()
}
