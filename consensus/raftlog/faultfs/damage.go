package faultfs

import (
	"fmt"
	"maps"
	"slices"
)

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
