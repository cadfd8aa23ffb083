// Command packaging makes the files of a release: static binaries with their lists of modules (CycloneDX) and the
// licences of these, packages for Debian and Fedora, container images, and the checksums of all of them. It is a
// module of its own, so that zk-lite does not depend on what packaging depends on. It publishes and signs nothing
// (`make sign` does), and starts no goroutines.
//
//	go run . [-root ..] [-out ../dist] [-version 1.2.3] binaries|packages|image ...
//
// The same commit gives the same bytes, on every machine with the same Go.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", "..", "directory of zk-lite's source")
	out := flag.String("out", "../dist", "directory for the results, which is made anew")
	version := flag.String("version", "", "version of the release; default: that of the source")
	flag.Parse()
	if err := release(*root, *out, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// release makes the requested kinds of results.
func release(root, out, version string, kinds []string) error {
	for _, kind := range kinds {
		if !slices.Contains([]string{"binaries", "packages", "image"}, kind) {
			return fmt.Errorf("%q: want binaries, packages or image", kind)
		}
	}
	if len(kinds) == 0 {
		return errors.New("nothing to do: want binaries, packages or image")
	}
	work, err := os.MkdirTemp("", "zk-lite-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return err
	}
	b := &builder{root: root, version: version}
	if err := b.identify(work); err != nil {
		return err
	}
	for _, t := range targets {
		kept := slices.Contains(kinds, "binaries")
		if !kept && !t.packaged() {
			continue
		}
		dir := work
		if kept {
			dir = out
		}
		if err := b.target(t, dir, out, work, kinds); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	if slices.Contains(kinds, "binaries") {
		name := filepath.Join(out, "zk-lite-"+b.version+"-licences.txt")
		if err := os.WriteFile(name, b.licences(), 0o644); err != nil {
			return err
		}
	}
	return checksums(out)
}

// target makes all files that contain one binary.
func (b *builder) target(t target, dir, out, work string, kinds []string) error {
	binary := filepath.Join(dir, t.file(b.version))
	if err := b.build(binary, t); err != nil {
		return err
	}
	if slices.Contains(kinds, "binaries") {
		if err := b.writeSBOM(binary); err != nil {
			return err
		}
	}
	if slices.Contains(kinds, "image") && t.packaged() {
		name := filepath.Join(out, fmt.Sprintf("zk-lite-%s-image-%s.tar", b.version, t.arch))
		if err := b.image(name, binary, t); err != nil {
			return err
		}
	}
	if slices.Contains(kinds, "packages") && t.packaged() {
		return b.packages(out, binary, work, t)
	}
	return nil
}

// checksums writes SHA256SUMS, for `sha256sum --check`.
func checksums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
