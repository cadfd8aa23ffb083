package main

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/docs"
)

// codeOfDocs is by how many bytes the program grows for what shows the pages: with all of this, but without the pages.
// Measured with goldmark 1.8.7, CGO_ENABLED=0 and -trimpath -ldflags '-s -w'.
const codeOfDocs = 840_000

// TestDocsCommand_Size: the pages in the program, with what shows them, are of 1 MiB at most.
func TestDocsCommand_Size(t *testing.T) {
	size := int64(codeOfDocs)
	err := fs.WalkDir(docs.Files, ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size += info.Size()
		return err
	})
	if err != nil || size > 1<<20 {
		t.Errorf("got %d bytes, %v; want %d at most: take a page out of docs/embed.go", size, err, 1<<20)
	}
}

// TestDocsCommand writes the pages, and serves them.
func TestDocsCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	out, err := exec.Command("zk-lite", "docs", "--out", dir).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), filepath.Join(dir, "index.html")) {
		t.Fatalf("zk-lite docs --out: %v, %s", err, out)
	}
	c := exec.CommandContext(t.Context(), "zk-lite", "docs")
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 5 {
		t.Fatalf("it prints %q, %v; want its address", line, err)
	}
	for _, page := range []string{"", "operations.html", "search.js"} {
		reply, err := http.Get(words[4] + page)
		if err != nil {
			t.Fatal(err)
		}
		served, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if page == "" {
			page = "index.html"
		}
		written, err2 := os.ReadFile(filepath.Join(dir, page))
		if err != nil || err2 != nil || !bytes.Equal(served, written) || len(written) == 0 {
			t.Errorf("%s: got %d bytes, %v, %v; want the %d that --out writes", page, len(served), err, err2, len(written))
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = c.Wait() // killed
}

func TestDocsCommand_Refused(t *testing.T) {
	for args, want := range map[string]string{
		"--port 70000":        "want 0 to 65535",
		"--clone /no-clone-1": "README.md",
	} {
		out, err := exec.Command("zk-lite", append([]string{"docs"}, strings.Fields(args)...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("zk-lite docs %s: %v, %s; want %s", args, err, out, want)
		}
	}
}
