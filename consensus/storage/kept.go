package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// kept is what has to stay at its place while the server runs, since a start looks for it there.
type kept struct {
	path string
	info os.FileInfo
}

// keep notes the files and directories that have to stay.
func (s *Store) keep(c *Config) error {
	paths := []string{c.Dir, filepath.Join(c.Dir, stableName), c.LogDir}
	if s.Raftlog != nil {
		paths = append(paths, filepath.Join(c.LogDir, "raftlog"))
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		s.kept = append(s.kept, kept{path, info})
	}
	return nil
}

// Lost reports that a file or directory that this server has open is not at its place any more, which the kernel does
// not mind: it writes on, and the next start finds nothing.
func (s *Store) Lost() error {
	for _, k := range s.kept {
		info, err := os.Stat(k.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s was removed while this server has it open", k.path)
		case err == nil && !os.SameFile(info, k.info):
			return fmt.Errorf("%s is another one than this server has open", k.path)
		}
	}
	return nil
}
