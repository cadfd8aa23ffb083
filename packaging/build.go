package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// target is an operating system and a processor.
type target struct{ system, arch string }

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

func (t target) String() string { return t.system + "/" + t.arch }

// packaged reports whether there are packages and images for it.
func (t target) packaged() bool { return t.system == "linux" }

func (t target) file(version string) string {
	name := fmt.Sprintf("zk-lite-%s-%s-%s", version, t.system, t.arch)
	if t.system == "windows" {
		name += ".exe"
	}
	return name
}

// builder builds zk-lite, and remembers the contents.
type builder struct {
	root    string
	version string // empty: that of the source, until identify
	commit  string
	time    time.Time // of the commit: that of all files, so that they are the same whenever they are made
	host    string    // a binary that runs here
	modules map[string]module
}

// module is one that a binary has code of.
type module struct{ Path, Version, licence string }

// identify builds the binary that runs here, and asks it for its version.
func (b *builder) identify(work string) error {
	b.host = filepath.Join(work, "host")
	b.modules = map[string]module{}
	if err := b.run(nil, b.host); err != nil {
		return err
	}
	text, err := exec.Command(b.host, "version", "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("asking the new binary for its version: %w", err)
	}
	var is struct {
		Version, Commit string
		Time            time.Time `json:"commit_time"`
		Modified        bool
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return fmt.Errorf("the new binary's version: %w", err)
	}
	if is.Commit == "" {
		return errors.New("the binary does not know its commit: want a clone of the repository with its own " +
			".git directory, no archive or worktree")
	}
	if is.Modified {
		fmt.Fprintln(os.Stderr, "packaging: warning: there are changes that are not committed; nobody can make "+
			"this again")
	}
	b.version, b.commit, b.time = is.Version, is.Commit, is.Time.UTC()
	return nil
}

// build builds the binary for a target.
func (b *builder) build(file string, t target) error {
	if err := b.run([]string{"GOOS=" + t.system, "GOARCH=" + t.arch}, file); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return err
	}
	return b.noteModules(info)
}

// run runs go build.
func (b *builder) run(env []string, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	flags := "-s -w" // no tables for debuggers; traces of panics do not need them
	if b.version != "" {
		flags += " -X main.version=" + b.version
	}
	args := []string{"build", "-trimpath", "-buildvcs=true", "-ldflags", flags, "-o", file}
	cmd := exec.Command("go", append(args, "./cmd/zk-lite")...)
	cmd.Dir, cmd.Stderr = b.root, os.Stderr
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1"), env...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}
