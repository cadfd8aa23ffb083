//go:build !js

package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zk-lite/zk-lite/lab/page"
)

// simulator takes the place of the page's module of that name.
//
//go:embed simulator.js
var simulator []byte

func main() {
	wasm := flag.String("wasm", "", "the simulator, built with GOOS=js GOARCH=wasm")
	glue := flag.String("glue", "", "wasm_exec.js of the Go that built it")
	out := flag.String("out", "", "directory to write to")
	flag.Parse()
	if err := write(*wasm, *glue, *out); err != nil {
		fmt.Fprintln(os.Stderr, "lab/site:", err)
		os.Exit(1)
	}
}

// write writes the page, with these two files beside it.
func write(wasm, glue, out string) error {
	if wasm == "" || glue == "" || out == "" {
		return fmt.Errorf("want -wasm, -glue and -out, as make lab-site gives them")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	files := map[string][]byte{}
	err := fs.WalkDir(page.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(page.Files(), name)
		return err
	})
	if err != nil {
		return err
	}
	if files["index.html"], err = withPolicy(files["index.html"]); err != nil {
		return err
	}
	files["simulator.js"] = simulator
	for name, from := range map[string]string{"lab.wasm": wasm, "wasm_exec.js": glue} {
		if files[name], err = os.ReadFile(from); err != nil {
			return err
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// withPolicy writes the policy that a server sends into the page itself, with permission to
// compile WebAssembly. A page cannot restrict who may frame it.
func withPolicy(index []byte) ([]byte, error) {
	policy := strings.Replace(page.Policy, "script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'", 1)
	policy, _, _ = strings.Cut(policy, "; frame-ancestors")
	const before = "<meta charset=\"utf-8\">\n"
	if !bytes.Contains(index, []byte(before)) {
		return nil, fmt.Errorf("index.html has no line %q", before)
	}
	meta := fmt.Sprintf("%s<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n", before, policy)
	return bytes.Replace(index, []byte(before), []byte(meta), 1), nil
}
