package restore

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/state/backup"
)

// backupFile is a backup as it came, in parts that the log takes.
type backupFile struct {
	own   [16]byte // the ensemble of which it has to be, if it says so; zero: any
	parts [][]byte
	size  int64
	sum   xxhash.Digest
}

// besideTree is what a backup may have beside its tree, in bytes: sessions and idempotency keys, which are left out.
const besideTree = 32 << 20

// read takes the file in while it is decoded, into so much memory.
func (f *backupFile) read(in io.Reader, room int64) (*backup.Backup, error) {
	f.sum.Reset()
	source := &sourceReader{in: in}
	buffered := bufio.NewReader(source)
	head, _ := buffered.Peek(state.BackupHead) // what is shorter is found below
	ensemble, err := state.BackupEnsemble(head)
	switch {
	case source.err != nil:
	case err != nil:
		return nil, refuse(buffered, fmt.Errorf("%w: %w", ErrNotBackup, err))
	case ensemble != f.own && f.own != [16]byte{} && ensemble != [16]byte{}:
		return nil, refuse(buffered, fmt.Errorf("%w: %x, and this is %x", ErrForeign, ensemble, f.own))
	}
	// What a tree takes is more than what it is decoded from.
	b, err := state.ReadBackupWithin(io.TeeReader(buffered, f), max(room, 0)+besideTree)
	switch {
	case source.err != nil:
		return nil, fmt.Errorf("receiving the backup: %w", source.err)
	case f.size > MaxBackup:
		return nil, ErrTooLarge
	case errors.Is(err, state.ErrDecodedTooLarge):
		return nil, refuse(buffered, ErrNoRoom)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotBackup, err)
	}
	return b, nil
}

// refuse reads the rest, and returns err: who has not yet sent all of a request would not get the answer.
func refuse(in io.Reader, err error) error {
	_, _ = io.Copy(io.Discard, io.LimitReader(in, MaxBackup)) // err counts
	return err
}

// sourceReader remembers its source's own error, to tell it from damage.
type sourceReader struct {
	in  io.Reader
	err error
}

func (r *sourceReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Write implements io.Writer: it adds to the parts.
func (f *backupFile) Write(p []byte) (int, error) {
	if f.size += int64(len(p)); f.size > MaxBackup {
		return 0, ErrTooLarge
	}
	_, _ = f.sum.Write(p) // never fails
	for left := p; len(left) > 0; {
		last := len(f.parts) - 1
		if last < 0 || len(f.parts[last]) == state.MaxBackupPart {
			f.parts = append(f.parts, make([]byte, 0, state.MaxBackupPart))
			last++
		}
		n := min(len(left), state.MaxBackupPart-len(f.parts[last]))
		f.parts[last] = append(f.parts[last], left[:n]...)
		left = left[n:]
	}
	return len(p), nil
}
