package storage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
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
}

func TestGolden_Form(t *testing.T) {
	c := Config{Dir: filepath.Join(t.TempDir(), "new")}
	f := c.Form()
	if err := f.Save([]state.ServerID{3, 0}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(string(f))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "form.json", b)
	if without, err := f.Load(); err != nil || !slices.Equal(without, []state.ServerID{3, 0}) {
		t.Errorf("%v, %v", without, err)
	}
	for content, want := range map[string]string{
		`{"version":2,"without":[3]}`:   "it has version 2, and this release reads version 1",
		`{"version":1,"without":[300]}`: "300 is not a server id",
		`{`:                             "unexpected end",
	} {
		if err := os.WriteFile(string(f), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if without, err := f.Load(); err != nil || len(without) > 0 {
		t.Errorf("removed: %v, %v", without, err)
	}
	if without, err := FormFile("").Load(); err != nil || len(without) > 0 || FormFile("").Remove() != nil {
		t.Errorf("none: %v, %v", without, err)
	}
}

// Directories of other releases are refused by name, with what to do, before anything is opened.
func TestOpen_OtherVersion_IsRefused(t *testing.T) {
	for content, want := range map[string]string{
		`{"ensemble":"01000000000000000000000000000010","server":7}`:             "before v0.9",
		`{"version":2,"ensemble":"01000000000000000000000000000010","server":7}`: "of a newer release",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "identity.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Config{Dir: dir})
		if err == nil {
			t.Error(s.Close())
		} else if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}
