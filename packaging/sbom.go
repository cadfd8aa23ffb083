package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// component is CycloneDX's.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

// bom is a list of components in CycloneDX's format, version 1.5.
type bom struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

// writeSBOM writes a binary's list of modules, as the binary itself has it, beside it.
func (b *builder) writeSBOM(binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	s := bom{Format: "CycloneDX", Spec: "1.5", Version: 1}
	s.Metadata.Timestamp = b.time.Format(time.RFC3339)
	s.Metadata.Component = component{
		Type: "application", Name: "zk-lite", Version: b.version,
		PURL:   "pkg:golang/" + info.Main.Path + "@" + b.version,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(content))}},
	}
	for _, m := range modulesOf(info) {
		s.Components = append(s.Components, component{
			Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version,
		})
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(binary+".cdx.json", append(text, '\n'), 0o644)
}

// modulesOf are the modules that a binary has code of, and Go's own library.
func modulesOf(info *buildinfo.BuildInfo) []module {
	all := []module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		all = append(all, module{Path: d.Path, Version: d.Version})
	}
	return all
}

// noteModules adds a binary's modules to those whose licences are needed.
func (b *builder) noteModules(info *buildinfo.BuildInfo) error {
	for _, m := range modulesOf(info) {
		if b.modules[m.Path].licence != "" {
			continue
		}
		dir, err := b.sourceOf(m)
		if err != nil {
			return err
		}
		if m.licence, err = licenceIn(dir); err != nil {
			return fmt.Errorf("the licence of %s %s: %w", m.Path, m.Version, err)
		}
		b.modules[m.Path] = m
	}
	return nil
}

// sourceOf is where the source of a module is.
func (b *builder) sourceOf(m module) (string, error) {
	cmd := exec.Command("go", "env", "GOROOT")
	if m.Path != "std" {
		cmd = exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.Path)
	}
	cmd.Dir = b.root
	out, err := cmd.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", fmt.Errorf("looking for the source of %s: %w", m.Path, cmp.Or(err, errors.New("it is not "+
			"downloaded")))
	}
	return dir, nil
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licenceIn is the text of all licence files in a directory.
func licenceIn(dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, f := range files {
		if f.IsDir() || !licenceName.MatchString(f.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "\n%s\n", bytes.TrimSpace(content))
	}
	if text.Len() == 0 {
		return "", fmt.Errorf("%s has no file LICENSE or COPYING", dir)
	}
	return text.String(), nil
}

// licences are those of all modules, one after the other.
func (b *builder) licences() []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "zk-lite %s has code of these modules, under these licences.\n", b.version)
	for _, path := range slices.Sorted(maps.Keys(b.modules)) {
		m := b.modules[path]
		name := cmp.Or(map[string]string{"std": "Go"}[path], path)
		fmt.Fprintf(&text, "\n%s\n%s %s\n%s", strings.Repeat("=", 80), name, m.Version, m.licence)
	}
	return text.Bytes()
}
