// Package durable writes files that survive a crash. It knows nothing of their content, and starts no goroutine.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile replaces a file, readable by its owner only, so that after a crash there is the old one or the new one. It
// returns when the new one is durable; an error is the file system's.
func WriteFile(path string, b []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return Rename(tmp, path)
}

// Rename gives a file that is durable its name, and returns when the name is durable, too.
func Rename(tmp, path string) error {
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
