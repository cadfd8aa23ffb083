package api

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// znodePath is the path in the URL, which is valid. An escaped slash is a slash:
// names cannot contain one.
func (q *request) znodePath() (string, error) {
	path := q.rawPath()
	return path, checkPath("path", path)
}

// rawPath is the path in the URL before anybody has looked at it.
func (q *request) rawPath() string {
	if path := q.vars["path"]; path != "" {
		return path
	}
	return znode.RootPath
}

func checkPath(param, path string) error {
	if err := znode.ValidatePath(path); err != nil {
		p := badRequest(param, "")
		// The error names the path already.
		p.Detail = strings.TrimSuffix(err.Error(), ": "+znode.ErrBadArguments.Error())
		if param != "path" {
			p.Detail = param + ": " + p.Detail
		}
		p.Path = strings.ToValidUTF8(path, "�")
		p.Hint = "names are separated by single slashes, without one at the end; the root is " +
			"/v1/znodes/"
		return p
	}
	return nil
}

// location is the URL of a znode, as header Location has it.
func location(path string) string {
	return (&url.URL{Path: "/v1/znodes" + path}).EscapedPath()
}

// setStat sets the headers that speak of a znode.
func (q *request) setStat(st *znode.Stat) {
	h := q.w.Header()
	h.Set("ETag", etag(st.Mzxid))
	h.Set(headerVersion, versionText(st.Version))
}

// created answers with a new znode.
func (q *request) created(path string, st *znode.Stat) error {
	q.w.Header().Set("Location", location(path))
	q.setStat(st)
	return q.answer(http.StatusCreated, znodeBody{Path: path, Stat: statOf(st)})
}
