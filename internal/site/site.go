// Package site makes a static web site of the pages of documentation: the files of a server or of `zk-lite docs`, and
// of `make site`. A page is a file of Markdown that can be reached from README.md by links. The sides of all pages show
// the lists of docs/README.md, so that a question or a page is added there and nowhere else.
//
// The search (web/site.js) runs in the browser, on an index that is made with the pages. The site asks no other server.
//
// The package has no state and starts no goroutine.
package site

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
)

// repository is where files are that the site does not have, such as source code.
const repository = "https://github.com/zk-lite/zk-lite/blob/main/"

// Policy is the Content-Security-Policy of the site: everything from its own origin.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed web
var web embed.FS

// frame is what surrounds each page.
var frame = template.Must(template.ParseFS(web, "web/page.html"))

// Source is what a site is made of.
type Source struct {
	// Files has the pages, from README.md on, and the pictures. Links to what it lacks lead to the repository.
	Files fs.FS
	// Folder is what Files is in the repository: "", or "docs".
	Folder string
	// Version is shown on each page.
	Version string
}

// builder makes one site.
type builder struct {
	Source
	pages map[string]*page // by name
	order []*page          // as they were found
	files map[string][]byte
}

// Build returns the files of the site by their paths; it begins at index.html.
func Build(s Source) (map[string][]byte, error) {
	b := &builder{Source: s, pages: map[string]*page{}, files: map[string][]byte{}}
	if _, err := b.page("README.md"); err != nil {
		return nil, err
	}
	for i := 0; i < len(b.order); i++ { // render appends those that a page links to
		if err := b.order[i].render(b); err != nil {
			return nil, err
		}
	}
	side, err := b.side()
	if err != nil {
		return nil, err
	}
	for _, p := range b.order {
		if err := b.write(p, side); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	b.files["search.js"] = index(b.order)
	for _, name := range []string{"site.css", "site.js", "icon.svg"} {
		if b.files[name], err = web.ReadFile("web/" + name); err != nil {
			return nil, err
		}
	}
	return b.files, nil
}

// page returns the page of a file, and nil if there is no such file.
func (b *builder) page(name string) (*page, error) {
	if p := b.pages[name]; p != nil {
		return p, nil
	}
	if !fs.ValidPath(name) || path.Ext(name) != ".md" {
		return nil, nil
	}
	source, err := fs.ReadFile(b.Files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &page{name: name, url: urlOf(name), source: source}
	b.pages[name] = p
	b.order = append(b.order, p)
	return p, nil
}

// urlOf is the path of a page in the site.
func urlOf(name string) string {
	if path.Base(name) == "README.md" {
		return path.Join(path.Dir(name), "index.html")
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

// up leads from the page at a path to the root of the site.
func up(url string) string { return strings.Repeat("../", strings.Count(url, "/")) }

// side is the page whose lists all pages show.
func (b *builder) side() (*page, error) {
	for _, name := range []string{"docs/README.md", "README.md"} {
		if p, err := b.page(name); p != nil || err != nil {
			return p, err
		}
	}
	return nil, errors.New("the site has no README.md to begin with")
}

// write puts a page into its frame.
func (b *builder) write(p, side *page) error {
	links, err := side.lists(b, p)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = frame.Execute(&out, struct {
		Title, Version, Root, Source string
		Links, Body                  template.HTML
		Headings                     []heading
	}{
		p.title, b.Version, up(p.url), repository + path.Join(b.Folder, p.name), links, p.body,
		slices.DeleteFunc(slices.Clone(p.headings), func(h heading) bool { return h.Level != 2 }),
	})
	b.files[p.url] = out.Bytes()
	return err
}

// types are those of the site's files; the machine's table may have others.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png",
}

// Handler serves the files of a site.
func Handler(files map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" || strings.HasSuffix(name, "/") {
			name += "index.html"
		}
		data, there := files[name]
		if !there {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", types[path.Ext(name)])
		w.Header().Set("Content-Security-Policy", Policy)
		_, _ = w.Write(data) // a browser that has gone needs no page
	})
}
