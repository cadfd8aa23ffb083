package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/golden"
)

func TestGolden_Identity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.json")
	if err := identityFile(path).Save(Identity{Ensemble: [16]byte{1, 15: 16}, Server: 7, Bootstrapping: true}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "identity.json", b)
	want := Identity{Ensemble: [16]byte{1, 15: 16}, Server: 7, Bootstrapping: true, Seed: "00000000000000ab"}
	if err := identityFile(path).Save(want); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "identity-seed.json", b)
	if got, err := identityFile(path).Load(); err != nil || *got != want {
		t.Errorf("read again: %+v, %v, want %+v", got, err, want)
	}
}

// Directories of other releases are refused by name, with what to do, before anything is opened.
func TestOpen_OtherVersion_IsRefused(t *testing.T) {
	for content, want := range map[string]string{
		`{"ensemble":"01000000000000000000000000000010","server":7}`:             "before v0.9",
		`{"version":3,"ensemble":"01000000000000000000000000000010","server":7}`: "of a newer release",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "identity.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Config{Dir: dir})
		if err == nil {
			t.Errorf("opened, want an error; closing: %v", s.Close())
		} else if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}
