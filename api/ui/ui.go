// Package ui is the dashboard: the files of a page at /ui/ that shows and changes the ensemble from a browser
// (docs/dashboard.md, ADR 0022). Everything that the page knows and does goes through the HTTP API like any other
// client's requests; this package only sends the files, which are part of the program, and says by a
// Content-Security-Policy that the page asks no other server.
//
// The page is ES modules, written and served as they are in web; web/vendor has other people's code, which its README
// names. There is no build step.
//
// It has no state and starts no goroutine.
package ui

import (
	"embed"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/api/rest"
)

// policy lets the page load and ask only this server, and no page frame it. Downloads are blobs,
// which need no permission.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types are those of the page's files; the machine's table may have others.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".md": "text/plain; charset=utf-8",
}

//go:embed web
var web embed.FS

// Routes returns the page's.
func Routes() []rest.Route {
	return []rest.Route{rest.LocalOp(http.MethodGet, "/ui/{path}", file).For(rest.Linked)}
}

// file sends a file of the page.
func file(q *rest.Request) error {
	name, inside := strings.CutPrefix(q.RawPath(), "/")
	if q.Vars["path"] == "" || !inside {
		q.W.Header().Set("Location", "/ui/")
		q.Begin(http.StatusFound)
		return nil
	}
	if name == "" {
		name = "index.html"
	}
	data, err := web.ReadFile(path.Join("web", path.Clean("/"+name)))
	if err != nil {
		return &rest.Problem{Status: http.StatusNotFound, Title: "no such file",
			Detail: "the page has no file " + strconv.Quote(name), Hint: "the page is at /ui/"}
	}
	h := q.W.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	q.SendBytes(http.StatusOK, types[path.Ext(name)], data)
	return nil
}
