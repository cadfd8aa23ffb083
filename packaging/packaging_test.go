package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var made = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// readImage makes an image of a binary with this content, and returns its files by name.
func readImage(t *testing.T, binary string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	program, name := filepath.Join(dir, "zk-lite"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(program, []byte(binary), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &builder{version: "1.2.3", commit: "0123", time: made}
	if err := b.image(name, program, target{"linux", "arm64"}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"": content}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestImage_BlobsHaveTheirDigestsAsNames(t *testing.T) {
	blobs := 0
	for name, content := range readImage(t, "program") {
		if want, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && want != "" {
			blobs++
			if digest(content) != "sha256:"+want {
				t.Errorf("%s has the digest %s", name, digest(content))
			}
		}
	}
	if blobs != 3 { // layer, configuration, manifest
		t.Errorf("%d blobs", blobs)
	}
}

func TestImage_RunsTheServerAsNobodyElse(t *testing.T) {
	files := readImage(t, "program")
	var manifest []struct{ Config string }
	var config struct {
		Architecture string
		Config       struct {
			User       string
			Entrypoint []string
		}
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(files[manifest[0].Config], &config); err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || len(c.Entrypoint) != 1 || c.Entrypoint[0] != "/zk-lite" ||
		config.Architecture != "arm64" {
		t.Errorf("%+v, want an image for arm64 of user 65532", config)
	}
}

func TestImage_SameInput_SameBytes(t *testing.T) {
	if !bytes.Equal(readImage(t, "program")[""], readImage(t, "program")[""]) {
		t.Error("two images of one binary differ")
	}
	if bytes.Equal(readImage(t, "program")[""], readImage(t, "other")[""]) {
		t.Error("the images of two binaries are the same")
	}
}

func TestLicenceIn_FindsAllOrRefuses(t *testing.T) {
	dir := t.TempDir()
	if text, err := licenceIn(dir); err == nil {
		t.Errorf("a licence without a file: %q", text)
	}
	for _, name := range []string{"LICENSE", "NOTICE.txt", "license.go.md", "licenses.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := licenceIn(dir)
	if err != nil || !strings.Contains(text, "LICENSE") || !strings.Contains(text, "NOTICE.txt") ||
		strings.Contains(text, "licenses.go") {
		t.Errorf("%q, %v, want LICENSE and NOTICE.txt alone", text, err)
	}
}

func TestRelease_UnknownKind_Refused(t *testing.T) {
	out := t.TempDir()
	for _, kinds := range [][]string{{}, {"snap"}, {"image", "snap"}} {
		if err := release("..", out, "", kinds); err == nil {
			t.Errorf("%q is made", kinds)
		}
	}
}

// TestSign: what docs/deployment.md says of a download finds each change of it, with a signature by `make sign`.
func TestSign(t *testing.T) {
	page, err := os.ReadFile("../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "## Check a download\n\n```\n")
	check, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/deployment.md has no commands below \"Check a download\"")
	}
	makefile, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	run := func(dir, script string) (string, error) {
		cmd := exec.Command("bash", "-euc", script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	prepare := `for key in owner other; do ssh-keygen -q -t ed25519 -N "" -C $key -f $key; done
		echo "zk-lite $(cat owner.pub)" >allowed_signers
		echo program >zk-lite-1.2.3-linux-amd64
		sha256sum zk-lite-* >SHA256SUMS
		make -s -C ` + makefile + ` sign KEY="$PWD/owner" DIST="$PWD"`
	for _, x := range []struct {
		change, want string // want: in the output of a check that succeeds; empty: it fails
	}{
		{"", "zk-lite-1.2.3-linux-amd64: OK"},
		{"echo another >zk-lite-1.2.3-linux-amd64", ""},
		{"echo another >zk-lite-1.2.3-linux-amd64; sha256sum zk-lite-* >SHA256SUMS", ""},
		{`rm SHA256SUMS.sig; make -s -C ` + makefile + ` sign KEY="$PWD/other" DIST="$PWD"`, ""},
		{"rm SHA256SUMS.sig; ssh-keygen -Y sign -f owner -n other SHA256SUMS", ""},
	} {
		dir := t.TempDir()
		if out, err := run(dir, prepare+"\n"+x.change); err != nil {
			t.Fatalf("%q fails: %v: %s", prepare+x.change, err, out)
		}
		out, err := run(dir, check)
		if (err == nil) != (x.want != "") || err == nil && !strings.Contains(out, `Good "zk-lite" signature`) ||
			!strings.Contains(out, x.want) {
			t.Errorf("after %q the check says %v: %s; want success: %v", x.change, err, out, x.want != "")
		}
	}
}
