package restore

import (
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/state/backup"
)

// backupFile is a backup as it came, in parts that the log takes.
type backupFile struct {
	parts [][]byte
	size  int64
	sum   xxhash.Digest
}

// read takes the file in while it is decoded.
func (f *backupFile) read(in io.Reader) (*backup.Backup, error) {
	f.sum.Reset()
	source := &sourceReader{in: in}
	b, err := state.ReadBackup(io.TeeReader(source, f))
	switch {
	case source.err != nil:
		return nil, fmt.Errorf("receiving the backup: %w", source.err)
	case f.size > MaxBackup:
		return nil, ErrTooLarge
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotBackup, err)
	}
	return b, nil
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
