package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the two formats
	nfpmfiles "github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	homepage   = "https://github.com/zk-lite/zk-lite"
	maintainer = "zk-lite maintainers <maintainers@zk-lite.example>"
	synopsis   = "coordination service that speaks ZooKeeper's protocol"
)

// packages writes a package in each format.
func (b *builder) packages(out, binary, work string, t target) error {
	staged, err := b.stage(filepath.Join(work, "staged"))
	if err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		info := b.describe(format, binary, staged, t)
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		var content bytes.Buffer
		if err := errors.Join(nfpm.PrepareForPackager(info, format), packager.Package(info, &content)); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
		name := filepath.Join(out, packager.ConventionalFileName(info))
		if err := os.WriteFile(name, content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// describe describes a package. The data directory is not in it: the script makes it, and the script's
// user owns it.
func (b *builder) describe(format, binary, staged string, t target) *nfpm.Info {
	zsh := map[string]string{"deb": "vendor-completions", "rpm": "site-functions"}[format]
	users := map[string]string{"deb": "passwd", "rpm": "shadow-utils"}[format] // has useradd
	units := map[string]string{"deb": "/lib", "rpm": "/usr/lib"}[format]
	with := func(mode os.FileMode, kind, source, destination string) *nfpmfiles.Content {
		return &nfpmfiles.Content{
			Source: source, Destination: destination, Type: kind,
			FileInfo: &nfpmfiles.ContentFileInfo{Mode: mode, MTime: b.time, Owner: "root", Group: "root"},
		}
	}
	const docs = "/usr/share/doc/zk-lite/"
	contents := nfpmfiles.Contents{
		with(0o755, "", binary, "/usr/bin/zk-lite"),
		with(0o644, nfpmfiles.TypeConfigNoReplace, "files/zoo.cfg", "/etc/zk-lite/zoo.cfg"),
		with(0o644, "", "files/zk-lite.service", units+"/systemd/system/zk-lite.service"),
		with(0o644, nfpmfiles.TypeTree, filepath.Join(staged, "man"), "/usr/share/man/man1"),
		with(0o644, "", filepath.Join(staged, "bash"), "/usr/share/bash-completion/completions/zk-lite"),
		with(0o644, "", filepath.Join(staged, "zsh"), "/usr/share/zsh/"+zsh+"/_zk-lite"),
		with(0o644, "", filepath.Join(staged, "fish"), "/usr/share/fish/vendor_completions.d/zk-lite.fish"),
		with(0o644, "", filepath.Join(staged, "licences.gz"), docs+"licences.txt.gz"),
		with(0o644, "", filepath.Join(staged, "changelog.gz"), docs+"changelog.Debian.gz"),
		with(0o644, "", "files/copyright", docs+"copyright"),
		with(0o644, "", "prometheus/alerts.yml", docs+"alerts.yml"),
		with(0o644, "", "grafana/zk-lite.json", docs+"grafana.json"),
	}
	if format == "deb" {
		contents = append(contents, with(0o644, "", "files/lintian-overrides", "/usr/share/lintian/overrides/zk-lite"))
	}
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "zk-lite", Arch: t.arch, Platform: t.system, Version: b.version, Release: "1",
		Section: "net", Priority: "optional", Maintainer: maintainer, Homepage: homepage, License: "Apache-2.0",
		Vendor: "zk-lite", MTime: b.time,
		Description: synopsis + "\n" +
			"A replicated tree of znodes with sessions, ephemerals and watches, for locks,\n" +
			"elections and configuration. Clients of Apache ZooKeeper work with it\n" +
			"unchanged. The package has the server, the command line and its manual.",
		Overridables: nfpm.Overridables{
			Depends: []string{users}, Contents: contents, Umask: 0o022,
			Scripts: nfpm.Scripts{
				PostInstall: "files/postinstall.sh", PreRemove: "files/preremove.sh", PostRemove: "files/postremove.sh",
			},
			RPM: nfpm.RPM{BuildHost: "localhost", Summary: synopsis},
		},
	})
}

// stage generates the files that the binary prints, once: they are the same for all processors.
func (b *builder) stage(dir string) (string, error) {
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	pages := filepath.Join(dir, "pages")
	if err := os.MkdirAll(filepath.Join(dir, "man"), 0o755); err != nil {
		return "", err
	}
	if _, err := b.ask("man", pages); err != nil {
		return "", err
	}
	files, err := os.ReadDir(pages)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		page, err := os.ReadFile(filepath.Join(pages, f.Name()))
		if err != nil {
			return "", err
		}
		if err := writeCompressed(filepath.Join(dir, "man", f.Name()+".gz"), page); err != nil {
			return "", err
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := b.ask("completion", shell)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, shell), script, 0o644); err != nil {
			return "", err
		}
	}
	changelog := fmt.Sprintf("zk-lite (%s-1) unstable; urgency=medium\n\n  * What changed: "+
		"%s/blob/main/CHANGELOG.md\n\n"+
		" -- %s  %s\n", b.version, homepage, maintainer, b.time.Format(time.RFC1123Z))
	return dir, errors.Join(
		writeCompressed(filepath.Join(dir, "changelog.gz"), []byte(changelog)),
		writeCompressed(filepath.Join(dir, "licences.gz"), b.licences()),
	)
}

// ask runs the binary, without settings in the environment, which its help would show.
func (b *builder) ask(args ...string) ([]byte, error) {
	cmd := exec.Command(b.host, args...)
	cmd.Env, cmd.Stderr = []string{"HOME=/"}, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("zk-lite %s: %w", args[0], err)
	}
	return out, nil
}

func writeCompressed(name string, content []byte) error {
	c, err := compressed(content)
	if err != nil {
		return err
	}
	return os.WriteFile(name, c, 0o644)
}
