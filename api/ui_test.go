package api_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestUI_Files serves each file of the page, which fetches nothing from elsewhere, and is
// small.
func TestUI_Files(t *testing.T) {
	c := newClient(t, shared().urls[0])
	if to := c.get("/ui").want(302).header.Get("Location"); to != "/ui/" {
		t.Errorf("/ui leads to %s", to)
	}
	c.get("/ui/").want(200).contains(`src="main.js"`)
	size, web := 0, os.DirFS("ui/web")
	err := fs.WalkDir(web, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		a := c.get("/ui/" + name).want(200)
		size += len(a.body)
		if a.header.Get("Content-Type") == "" || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: headers %v, want a content type and the policy", name, a.header)
		}
		if other := regexp.MustCompile(`(?i)(src|href|from|import)\s*[=(]?\s*["'](https?:)?//`).Find(a.body); other != nil {
			t.Errorf("%s asks elsewhere: %s", name, other)
		}
		return nil
	})
	if err != nil || size > 200_000 {
		t.Errorf("%d bytes: %v", size, err)
	}
	for _, name := range []string{"none.js", "../ui.go", "%2e%2e/ui.go", "vendor", "vendor/"} {
		c.get("/ui/" + name).want(404)
	}
}
