package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// A backup is a snapshot with a label between its magic and its zstd stream, which names the ensemble. The label is
// a skippable frame of zstd (RFC 8878, 3.1.2), which other readers skip.
const (
	labelFrame   = "\x5a\x2a\x4d\x18" + "\x19\x00\x00\x00" // the kind of frame, and the size of what follows
	labelVersion = 1
	labelBytes   = 1 + 16 + 8         // the version, the ensemble, and the xxhash of both
	zstdFrame    = "\x28\xb5\x2f\xfd" // the start of the stream that the label precedes
)

// BackupHead is how many bytes BackupEnsemble needs to see of a backup.
const BackupHead = len(snapshotMagic) + len(labelFrame) + labelBytes

// WriteBackup encodes the snapshot as a backup of this ensemble. It leaves out the same as
// OnlyState.
func (s *Snapshot) WriteBackup(w io.Writer, ensemble [16]byte) error {
	s.OnlyState()
	b := append([]byte(snapshotMagic+labelFrame), labelVersion)
	b = append(b, ensemble[:]...)
	b = binary.BigEndian.AppendUint64(b, xxhash.Sum64(b[len(b)-17:]))
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("writing backup: %w", err)
	}
	return s.writeStream(w)
}

// BackupEnsemble returns the ensemble of a backup, from its first BackupHead bytes. It is zero if they have no
// label, because the file is not a backup or a build before v1.0 wrote it.
//
// Errors: the label is damaged, or has another version.
func BackupEnsemble(head []byte) (ensemble [16]byte, err error) {
	b, is := bytes.CutPrefix(head, []byte(snapshotMagic))
	if !is || bytes.HasPrefix(b, []byte(zstdFrame)) {
		return ensemble, nil
	}
	b, is = bytes.CutPrefix(b, []byte(labelFrame))
	switch {
	case !is || len(b) < labelBytes:
		return ensemble, errors.New("the label of its ensemble is cut off or changed")
	case b[0] != labelVersion:
		return ensemble, fmt.Errorf("the label of its ensemble has version %d; this build reads version %d", b[0],
			labelVersion)
	case binary.BigEndian.Uint64(b[17:]) != xxhash.Sum64(b[:17]):
		return ensemble, errors.New("the label of its ensemble has another checksum")
	}
	return [16]byte(b[1:17]), nil
}
