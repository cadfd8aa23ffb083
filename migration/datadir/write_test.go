package datadir_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/migration/datadir"
)

// What is written is read again, with its digest; it is readable by its owner only, and nothing else is there.
func TestWriteSnapshot(t *testing.T) {
	for _, origin := range origins(t) {
		r, _ := load(t, origin)
		dir := filepath.Join(t.TempDir(), "new")
		name, err := datadir.WriteSnapshot(dir, r)
		if err != nil {
			t.Fatalf("WriteSnapshot = %v", err)
		}
		want := filepath.Join(dir, "version-2", "snapshot."+strings.TrimPrefix(r.Zxid.String(), "0x"))
		if all := files(t, dir); name != want || len(all) != 1 {
			t.Errorf("wrote %s, and %d files; want %s alone", name, len(all), want)
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != fs.FileMode(0o600) {
			t.Errorf("mode %v, %v; want -rw-------", info.Mode(), err)
		}
		again, report := load(t, dir)
		if !bytes.Equal(written(t, again), written(t, r)) {
			t.Error("another state is read")
		}
		if report.Digests.Equal != 1 || report.Snapshot.DigestZxid != r.Zxid.String() || report.Transactions != 0 {
			t.Errorf("report %+v; want one digest of %v that is equal", report, r.Zxid)
		}
	}
}

// A directory with data of a server is left alone, and so is one that was not writable.
func TestWriteSnapshot_Refuses(t *testing.T) {
	r, _ := load(t, filepath.Join("testdata", "origin", "3.9.5"))
	for _, inner := range []string{"", "version-2"} {
		for _, name := range []string{"log.1", "snapshot.5", "snapshot.5.gz", "snapshot.7.tmp"} {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, inner), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, inner, name), []byte("theirs"))
			_, err := datadir.WriteSnapshot(dir, r)
			if err == nil || !strings.Contains(err.Error(), "holds ZooKeeper data already") {
				t.Errorf("with %s in %q WriteSnapshot = %v; want a refusal", name, inner, err)
			}
			if all := files(t, dir); len(all) != 1 {
				t.Errorf("with %s in %q there are %d files afterwards", name, inner, len(all))
			}
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	if _, err := datadir.WriteSnapshot(file, r); err == nil {
		t.Error("WriteSnapshot into a file succeeds")
	}
}
