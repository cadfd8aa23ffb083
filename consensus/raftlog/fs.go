package raftlog

import (
	"io"
	"os"
	"path/filepath"
)

// FS is the part of a file system that the store needs. Names are paths. The implementation must
// be safe for concurrent use. OS returns the real one; package faultfs has one that injects faults.
type FS interface {
	Files
	Directories
}

// Files is the part of an FS that makes, opens and removes files. Changes of names are durable after SyncDir.
type Files interface {
	// Create makes an empty file for reading and writing, or empties the one that exists.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing. A missing file gives an error
	// that wraps fs.ErrNotExist.
	Open(name string) (File, error)
	// OpenDirect opens an existing file for writes past the page cache. Its length must be a
	// multiple of 4096, and everything in it durable. An error that wraps errors.ErrUnsupported
	// means that the system or the file system cannot do this, or is not known to do it well.
	OpenDirect(name string) (DirectFile, error)
	// Rename replaces newName by oldName atomically.
	Rename(oldName, newName string) error
	// Remove deletes a file.
	Remove(name string) error
	// Lock takes an exclusive lock on a file, creating it if need be, without waiting: an
	// error means that another process holds it. Closing the result gives it up.
	Lock(name string) (io.Closer, error)
}

// Directories is the part of an FS that makes and lists directories, and makes changes in them durable.
type Directories interface {
	// MkdirAll creates a directory and its parents and makes the new names durable.
	MkdirAll(dir string) error
	// List returns the base names of the entries of a directory, in no particular order.
	List(dir string) ([]string, error)
	// SyncDir makes creations, renames and removals in a directory durable.
	SyncDir(dir string) error
}

// File is an open file of an FS.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Sync makes content and metadata durable (fsync).
	Sync() error
	// Datasync makes content durable, and metadata only as far as reading needs it (fdatasync).
	Datasync() error
}

// DirectFile writes to a file that is open as a File too. That one reads what was written.
type DirectFile interface {
	// WriteDurable writes b to off and returns when it is on stable storage (O_DIRECT and
	// O_DSYNC). Offset, length and place in memory of b are multiples of 4096. After an error,
	// and after a power cut during the call, each sector of the disk is old or new. One call
	// may run at a time.
	WriteDurable(b []byte, off int64) error
	// Park has WriteDurable park its goroutine, if the kernel can do that, or block its thread, as at first. It may
	// not be called during a WriteDurable.
	Park(bool)
	io.Closer
}

// filePerm and dirPerm keep the log, which holds every znode's data, from other users.
const (
	filePerm = 0o600
	dirPerm  = 0o700
)

// OS returns the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) MkdirAll(dir string) error {
	var missing []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		missing = append(missing, d)
	}
	if err := os.MkdirAll(dir, dirPerm); err != nil {
		return err
	}
	for _, d := range missing {
		// A new directory's name is durable only after a sync of its parent.
		if err := (osFS{}).SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

func (osFS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_TRUNC, filePerm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Open(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, filePerm)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Datasync() error { return datasync(f.File) }
