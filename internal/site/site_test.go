package site

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"

	"github.com/zk-lite/zk-lite/docs"
)

// root is the repository's.
var root = os.DirFS("../..")

func build(t *testing.T, s Source) map[string][]byte {
	t.Helper()
	files, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// elements calls see with each element of a page.
func elements(t *testing.T, page []byte, see func(n *html.Node, attr map[string]string)) {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			attr := map[string]string{}
			for _, a := range n.Attr {
				attr[a.Key] = a.Val
			}
			see(n, attr)
		}
	}
}

// TestSite_Links: in both forms of the site, each link leads to a file of it and a heading of that, or to a file of the
// repository; each picture is there; nothing is fetched from elsewhere.
func TestSite_Links(t *testing.T) {
	for name, s := range map[string]Source{"all": {Files: root}, "embedded": {Files: docs.Files, Folder: "docs"}} {
		t.Run(name, func(t *testing.T) {
			files, ids, links := build(t, s), map[string]bool{}, 0
			for file, data := range files {
				if path.Ext(file) == ".html" {
					elements(t, data, func(_ *html.Node, attr map[string]string) {
						id := attr["id"]
						if id != "" && ids[file+"#"+id] {
							t.Errorf("%s has two elements with the id %s", file, id)
						}
						ids[file+"#"+id] = true
					})
				}
			}
			for file, data := range files {
				if path.Ext(file) != ".html" {
					continue
				}
				elements(t, data, func(n *html.Node, attr map[string]string) {
					to := attr["href"] + attr["src"]
					u, err := url.Parse(to)
					source, ours := strings.CutPrefix(to, repository)
					switch {
					case to == "":
					case err != nil:
						t.Errorf("%s: %v", file, err)
					case ours:
						if _, err := fs.Stat(root, strings.Split(source, "#")[0]); err != nil {
							t.Errorf("%s links to the repository: %v", file, err)
						}
					case u.Host != "" && n.Data == "a": // someone else's site, which a reader may visit
					case u.Host != "":
						t.Errorf("%s fetches %s", file, to)
					default:
						links++
						at := file
						if u.Path != "" {
							at = path.Join(path.Dir(file), u.Path)
						}
						if _, there := files[at]; !there || u.Fragment != "" && !ids[at+"#"+u.Fragment] {
							t.Errorf("%s links to %s, which does not exist", file, to)
						}
					}
				})
			}
			if links < 250 {
				t.Errorf("got %d links within the site, want many", links)
			}
		})
	}
}

// TestSite_Page shows what becomes of a page's links, pictures, code and headings.
func TestSite_Page(t *testing.T) {
	files := build(t, Source{Version: "1.2.3", Files: fstest.MapFS{
		"README.md":         {Data: []byte("# Start\n[all](docs/README.md) [code](a.go#L1) ![there](docs/a.svg) ![gone](b.svg)\n")},
		"docs/README.md":    {Data: []byte("# The pages\nAn introduction.\n\n## Run\n\n- [deep](deep/page.md#x-y)\n- [this](README.md)\n")},
		"docs/deep/page.md": {Data: []byte("# Deep `code`\n## X: y\n```\na <table> | b\n```\n## X: y\n| a |\n|---|\n| b |\n")},
		"docs/a.svg":        {Data: []byte("<svg/>")},
		"other.md":          {Data: []byte("# No link leads here\n")},
	}})
	for file, want := range map[string][]string{
		"index.html": {
			`<title>Start - zk-lite</title>`, `<small>1.2.3</small>`, `<a href="docs/index.html">all</a>`, `src="docs/a.svg"`,
			`<a href="` + repository + `a.go#L1">`, `[gone]`, `<a href="docs/deep/page.html#x-y">deep</a>`,
		},
		"docs/deep/page.html": {
			`<h1 id="deep-code">Deep <code>code</code></h1>`, `id="x-y"`, `id="x-y-1"`, `<pre tabindex="0"><code>a &lt;table&gt;`,
			`<div class="wide" tabindex="0"><table>`, `href="../../site.css"`, `<a href="../../docs/index.html">this</a>`,
		},
		"docs/index.html": {`<a href="../docs/index.html" aria-current="page">this</a>`},
		"docs/a.svg":      {"<svg/>"},
	} {
		for _, part := range want {
			if !bytes.Contains(files[file], []byte(part)) {
				t.Errorf("%s lacks %s:\n%s", file, part, files[file])
			}
		}
	}
	if _, there := files["other.html"]; there {
		t.Error("a page that no link leads to is in the site")
	}
	if n := bytes.Count(files["docs/deep/page.html"], []byte("An introduction.")); n != 0 {
		t.Error("the side shows more than headings and lists")
	}
}

func TestSite_Refused(t *testing.T) {
	for want, files := range map[string]fstest.MapFS{
		"no README.md": {"docs/a.md": {}},
		"README.md: the page does not begin with a heading": {"README.md": {Data: []byte("## Second\n")}},
	} {
		if _, err := Build(Source{Files: files}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %s", err, want)
		}
	}
}

// TestIndex finds sections by their words, as the script does.
func TestIndex(t *testing.T) {
	files := build(t, Source{Files: fstest.MapFS{
		"README.md": {Data: []byte("# One\nalpha `limits.treeBytes`\n## Two\nbeta alpha\n## Three\n| gamma |\n|---|\n| Alpha |\n")},
	}})
	text := strings.TrimSuffix(strings.TrimPrefix(string(files["search.js"]), "globalThis.searched = "), ";\n")
	var index struct {
		Sections  [][]any
		Words, In string
	}
	if err := json.Unmarshal([]byte(text), &index); err != nil {
		t.Fatal(err)
	}
	got, lists := map[string]string{}, strings.Fields(index.In)
	for i, word := range strings.Fields(index.Words) {
		at := int64(0)
		for step := range strings.SplitSeq(lists[i], ",") {
			n, err := strconv.ParseInt(step, 36, 64)
			if err != nil {
				t.Fatal(err)
			}
			at += n
			got[word] += index.Sections[at][2].(string) + " "
		}
	}
	for word, want := range map[string]string{
		"alpha": "One Two Three ", "beta": "Two ", "treebytes": "One ", "three": "Three ", "gamma": "Three ",
	} {
		if got[word] != want {
			t.Errorf("%s is in %q, want %q", word, got[word], want)
		}
	}
}

func TestHandler(t *testing.T) {
	h := Handler(map[string][]byte{"index.html": []byte("start"), "docs/index.html": []byte("pages"), "a.js": []byte("1")})
	for _, c := range []struct {
		path, body, kind string
		status           int
	}{
		{"/", "start", "text/html; charset=utf-8", http.StatusOK},
		{"/docs/", "pages", "text/html; charset=utf-8", http.StatusOK},
		{"/a.js", "1", "text/javascript; charset=utf-8", http.StatusOK},
		{"/none", "404 page not found\n", "text/plain; charset=utf-8", http.StatusNotFound},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		if w.Code != c.status || w.Body.String() != c.body || w.Header().Get("Content-Type") != c.kind {
			t.Errorf("%s: got %d, %q, %v, want %+v", c.path, w.Code, w.Body, w.Header(), c)
		}
		if c.status == http.StatusOK && w.Header().Get("Content-Security-Policy") != Policy {
			t.Errorf("%s: got the policy %q", c.path, w.Header().Get("Content-Security-Policy"))
		}
	}
}
