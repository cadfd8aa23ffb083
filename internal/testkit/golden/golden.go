// Package golden keeps samples of the formats on the network and on disk as test data, so that a test notices when
// a format changes. docs/formats.md lists the files. It starts no goroutine.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

// Check compares bytes with testdata/golden/name.
func Check(t testing.TB, name string, got []byte) {
	t.Helper()
	if want := Read(t, name, got); !bytes.Equal(got, want) {
		t.Errorf("the format of %s has changed: give it another version, and see docs/formats.md; it is "+
			"now\n%q\nand was\n%q",
			name, got, want)
	}
}

// Read returns the bytes of testdata/golden/name. With the flag -update those given are written there first.
func Read(t testing.TB, name string, now []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, now, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
