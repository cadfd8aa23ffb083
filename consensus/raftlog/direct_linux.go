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
	file   *os.File
	aio    *aio           // nil: writes block
	failed bool           // it could not be had, and is not asked for again
	ending sync.WaitGroup // those that are being given up
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

// checkFileSystem lets those pass whose direct, durable writes in place are known to be what DirectFile
// promises.
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

// dropCache lets the page cache forget the file: a direct write over a page that is there has to
// wait for it, and so cannot be done without blocking. It is only advice.
func dropCache(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

// try writes the first block again, as it is, to see whether all this works on this file.
func (d *directFile) try() error {
	b := alignedBuffer(blockSize)[:blockSize]
	if _, err := d.file.ReadAt(b, 0); err != nil {
		return err
	}
	err := d.writeBlocking(b, 0)
	if unable(err) {
		return fmt.Errorf("%w, %w", err, errors.ErrUnsupported)
	}
	return err
}

// unable reports whether err says that a call, as it was made, is not to be had here. Nothing was
// written then.
func unable(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)
}

// WriteDurable implements DirectFile. What would block before the write is on its way (a page of the
// place in the page cache; the file system's journal, for the time of the change) gives EAGAIN.
func (d *directFile) WriteDurable(b []byte, off int64) error {
	if d.aio != nil {
		err := d.aio.write(b, off)
		if unable(err) {
			d.failed = true
			d.SetBlocking(true)
		} else if !errors.Is(err, unix.EAGAIN) {
			return err
		}
	}
	return d.writeBlocking(b, off)
}

func (d *directFile) writeBlocking(b []byte, off int64) error {
	for {
		n, err := unix.Pwritev2(int(d.file.Fd()), [][]byte{b}, off, unix.RWF_DSYNC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return writeError(d.file.Name(), n, len(b), err)
	}
}

// writeError is the error of a write of want bytes that wrote n, nil if there is none.
func writeError(name string, n, want int, err error) error {
	if err == nil && n != want {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = &os.PathError{Op: "direct write", Path: name, Err: err}
	}
	return err
}

// SetBlocking implements DirectFile.
func (d *directFile) SetBlocking(blocking bool) {
	switch {
	case blocking && d.aio != nil:
		d.ending.Go(d.aio.close)
		d.aio = nil
	case !blocking && d.aio == nil && !d.failed:
		a, err := newAIO(d.file)
		d.aio, d.failed = a, err != nil
	}
}

// Close implements DirectFile.
func (d *directFile) Close() error {
	d.SetBlocking(true)
	d.ending.Wait()
	return d.file.Close()
}
