package backupfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/state/backup"
)

// Ensemble is the id of the ensemble that a backup is of; zero: the backup does not say.
type Ensemble [16]byte

// String is the id in hexadecimal, as servers write it; "unknown" for none.
func (e Ensemble) String() string {
	if e == (Ensemble{}) {
		return "unknown"
	}
	return fmt.Sprintf("%x", e[:])
}

// ErrUnusable reports that a backup cannot be restored: it is none, damaged, incomplete, or of another version.
var ErrUnusable = errors.New("the backup cannot be restored")

// labelled reads the ensemble, and returns what reads all, from the first byte.
func labelled(in io.Reader) (io.Reader, Ensemble, error) {
	b := bufio.NewReaderSize(in, 1<<16)
	head, _ := b.Peek(state.BackupHead) // an error comes again with the next read
	e, err := state.BackupEnsemble(head)
	return b, e, err
}

// Restore reads a backup to its end, restores it in memory and compares the digest of what that makes with the one that
// was written: nothing that a server would refuse passes.
//
// Errors: ErrUnusable.
func Restore(in io.Reader) (*backup.Backup, Ensemble, error) {
	in, e, err := labelled(in)
	var b *backup.Backup
	if err == nil {
		b, err = state.ReadBackup(in)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return b, e, err
}
