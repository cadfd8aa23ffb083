package data

import (
	"net/http"
	"net/url"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/znode"
)

// znodeBody is a znode as JSON.
type znodeBody struct {
	Path string `json:"path"`
	rest.Content
	Stat *rest.Stat `json:"stat,omitempty"`
}

// location is the URL of a znode, as header Location has it.
func location(path string) string {
	return (&url.URL{Path: "/v1/znodes" + path}).EscapedPath()
}

// setStat sets the headers that speak of a znode.
func setStat(q *rest.Request, st *znode.Stat) {
	h := q.W.Header()
	h.Set("ETag", etag(st.Mzxid))
	h.Set(rest.HeaderVersion, versionText(st.Version))
}

// created answers with a new znode.
func created(q *rest.Request, path string, st *znode.Stat) error {
	q.W.Header().Set("Location", location(path))
	setStat(q, st)
	return q.Answer(http.StatusCreated, znodeBody{Path: path, Stat: rest.StatOf(st)})
}
