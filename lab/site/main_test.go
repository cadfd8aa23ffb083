//go:build !js

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite_PageWithItsPolicy(t *testing.T) {
	from, out := t.TempDir(), t.TempDir()
	wasm, glue := filepath.Join(from, "w"), filepath.Join(from, "g")
	for _, name := range []string{wasm, glue} {
		if err := os.WriteFile(name, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(wasm, glue, out); err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil || !strings.Contains(string(index), "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'") {
		t.Errorf("%v: %.600s, want the policy of the page", err, index)
	}
	module, err := os.ReadFile(filepath.Join(out, "simulator.js"))
	if err != nil || string(module) != string(simulator) {
		t.Errorf("%v: the module that asks a server was written", err)
	}
	if write("", glue, out) == nil || write(filepath.Join(from, "none"), glue, out) == nil {
		t.Error("a site without its simulator was written")
	}
}
