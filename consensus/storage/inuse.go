package storage

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// InUse reports whether a process has a server's data directory open. An error says why that is not known.
func InUse(dir string) (bool, error) {
	path := filepath.Join(dir, stableName)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Millisecond})
	switch {
	case err == nil:
		return false, db.Close()
	case errors.Is(err, bbolterrors.ErrTimeout):
		return true, nil
	case errors.Is(err, fs.ErrPermission):
		return false, err
	}
	return false, nil // there is none, or one that no server opens
}
