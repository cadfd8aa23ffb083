package state

import (
	"bytes"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/golden"
)

// A backup names its ensemble, and other readers read it as a snapshot.
func TestBackup_Label(t *testing.T) {
	m, ensemble := busy(t), [16]byte([]byte("0123456789abcdef"))
	s := m.Snapshot()
	defer s.Release()
	var b bytes.Buffer
	if err := s.WriteBackup(&b, ensemble); err != nil {
		t.Fatal(err)
	}
	good := b.Bytes()
	golden.Check(t, "backup.bin", good[:BackupHead])
	if got, err := BackupEnsemble(good); got != ensemble || err != nil {
		t.Errorf("the ensemble is %x (%v), want %x", got, err, ensemble)
	}
	if from, err := ReadBackup(bytes.NewReader(good)); err != nil || from.Size() != m.tree.Size() {
		t.Errorf("the backup is read with error %v, want all znodes", err)
	}
	if got, err := BackupEnsemble(write(t, m)); got != [16]byte{} || err != nil {
		t.Errorf("without a label: %x, %v", got, err)
	}
	for n := len(snapshotMagic); n < BackupHead; n++ {
		bad := bytes.Clone(good)
		bad[n] ^= 1
		if _, err := BackupEnsemble(bad); err == nil {
			t.Errorf("byte %d is changed: no error", n)
		}
		if _, err := ReadSnapshot(bytes.NewReader(bad)); err == nil {
			t.Errorf("byte %d is changed, but zstd skips it: it is read", n)
		}
		if _, err := BackupEnsemble(good[:n]); err == nil {
			t.Errorf("cut off at %d: no error", n)
		}
	}
	next := bytes.Clone(good)
	next[len(snapshotMagic+labelFrame)]++
	if _, err := BackupEnsemble(next); err == nil || !strings.Contains(err.Error(), "version 2; this build reads version 1") {
		t.Errorf("a newer version: error %v, want one with both versions", err)
	}
	if err := s.WriteBackup(&brokenWriter{BackupHead - 1}, ensemble); err == nil {
		t.Error("the label does not fit: no error")
	}
}
