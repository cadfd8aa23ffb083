package faultfs

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
)

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

func (f *FS) changeLocked(c nameChange) {
	c.apply(f.names)
	f.pending = append(f.pending, c)
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

func sortedNames(m map[string]*inode) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
