package browser

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/lab/story"
)

// TestSite_Story builds the static form of the page as make lab-site does, serves its files
// and nothing else, and plays a story on it: the simulator runs in the browser.
func TestSite_Story(t *testing.T) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "make", "-C", "../..", "lab-site", "SITE="+dir)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make lab-site: %v\n%s", err, out)
	}
	wasm, err := os.ReadFile(filepath.Join(dir, "lab.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(wasm); err != nil || w.Close() != nil || packed.Len() > 3_000_000 {
		t.Errorf("the simulator has %d bytes compressed, %v: want 3,000,000 at most", packed.Len(), err)
	}
	stories, err := story.All()
	if err != nil {
		t.Fatal(err)
	}
	p := openAt(t, serverOf(t, http.FileServerFS(os.DirFS(dir))), 1280, "")
	if message := p.text("#error"); message != "" {
		t.Fatalf("the page shows the error %q, want none", message)
	}
	p.play(stories[0])
	p.run("election --tempo 3")
	if p.text("#error") == "" {
		t.Error("a wrong line is not refused")
	}
	p.wantNoViolation("the static page")
}
