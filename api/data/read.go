package data

import (
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
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

// getZnode reads a znode, its children, its ACL, or all below it.
func getZnode(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	if q.Query.Has("revisions") || q.Query.Has("at") {
		return getPast(q, path)
	}
	children, err := q.Query.Flag("children")
	if err != nil {
		return err
	}
	tree, err := q.Query.Flag("tree")
	if err != nil {
		return err
	}
	switch {
	case tree && (children || q.Query.Has("raw") || q.Query.Has("about")):
		return rest.BadRequest("tree", "it cannot be combined with raw, children or about")
	case !tree && q.Query.Has("consistent"):
		return rest.BadRequest("consistent", "it goes with tree, which is always read from one state")
	case q.Query.Has("acl") && (children || q.Query.Has("raw")):
		return rest.BadRequest("acl", "it cannot be combined with raw or children")
	case q.Query.Has("raw") && children:
		return rest.BadRequest("raw", "it cannot be combined with children, which are JSON")
	case q.Query.Has("about") && (children || q.Query.Has("raw") || q.Query.Has("acl")):
		return rest.BadRequest("about", "it cannot be combined with raw, children or acl")
	case children:
		return getChildren(q, path)
	}
	if err := q.Query.Only("children", "stat", "data", "limit", "after", "match", "type", "offset"); err != nil {
		return err
	}
	switch {
	case tree:
		return getTree(q, path)
	case q.Query.Has("acl"):
		return getACL(q, path)
	case q.Query.Has("about"):
		return getAbout(q, path)
	}
	return getData(q, path)
}

func getData(q *rest.Request, path string) error {
	raw, err := q.Query.Flag("raw")
	if err != nil {
		return err
	}
	var data []byte
	var st znode.Stat
	var code znode.Error
	q.View(func(v *server.View) { data, st, code = v.Tree().Get(path, q.IDs) })
	if code != znode.OK {
		return rest.Fail(code, path)
	}
	setStat(q, &st)
	switch {
	case matchesNone(q, st.Mzxid):
		q.Begin(http.StatusNotModified)
		return nil
	case raw:
		q.SendBytes(http.StatusOK, "application/octet-stream", data)
		return nil
	}
	return q.Answer(http.StatusOK, znodeBody{
		Path: path, Content: rest.ContentOf(data), Stat: rest.StatOf(&st),
	})
}

// aboutBody describes a znode.
type aboutBody struct {
	Path  string     `json:"path"`
	Kind  string     `json:"kind"`
	TTL   string     `json:"ttl,omitempty"`
	May   string     `json:"may"` // the client's permissions
	Below belowBody  `json:"below"`
	Stat  *rest.Stat `json:"stat"`
}

// belowBody counts what goes with a znode.
type belowBody struct {
	Znodes     int   `json:"znodes"`
	Ephemerals int   `json:"ephemerals"`
	Bytes      int64 `json:"bytes"`
	More       bool  `json:"more"` // than one transaction deletes; the counts are too small then
}

// getAbout describes a znode.
func getAbout(q *rest.Request, path string) error {
	var a znode.About
	var st znode.Stat
	var code znode.Error
	q.View(func(v *server.View) { a, st, code = v.Tree().About(path, q.IDs, maxOps) })
	if code != znode.OK {
		return rest.Fail(code, path)
	}
	body := aboutBody{Path: path, Kind: a.Kind, May: a.Perms.String(), Stat: rest.StatOf(&st),
		Below: belowBody{a.Below.Znodes, a.Below.Ephemerals, a.Below.Bytes, a.Below.Znodes == maxOps}}
	if a.TTLMillis > 0 {
		body.TTL = (time.Duration(a.TTLMillis) * time.Millisecond).String()
	}
	return q.Answer(http.StatusOK, body)
}

// childrenBody is a page of a znode's children.
type childrenBody struct {
	Path string `json:"path"`
	// Children are names, or with stat or data a rest.Child each.
	Children any        `json:"children"`
	Next     string     `json:"next,omitempty"` // the after= of the next page
	Stat     *rest.Stat `json:"stat"`           // the parent's
}

func getChildren(q *rest.Request, path string) (err error) {
	r := rest.PageRequest{Path: path, IDs: q.IDs, After: q.Query.Text("after"), Match: q.Query.Text("match")}
	if r.Stat, err = q.Query.Flag("stat"); err != nil {
		return err
	}
	if r.Data, err = q.Query.Flag("data"); err != nil {
		return err
	}
	if r.Limit, err = q.Query.Integer("limit", rest.MaxPage, 1, rest.MaxPage); err != nil {
		return err
	}
	if r.Types, err = list(q, "type", feedTypes); err != nil {
		return err
	}
	offset, err := q.Query.Integer("offset", 0, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	var p rest.Page
	if q.Query.Has("offset") {
		if q.Query.Has("after") || q.Query.Has("match") || q.Query.Has("type") {
			return rest.BadRequest("offset", "it cannot be combined with after, match or type: they look at all")
		}
		p = r.ReadAt(q, offset)
	} else {
		p = r.Read(q)
	}
	if p.Code != znode.OK {
		return rest.Fail(p.Code, path)
	}
	body := childrenBody{Path: path, Children: p.Names, Next: p.Next, Stat: rest.StatOf(&p.Parent)}
	if r.Stat || r.Data {
		body.Children = p.Children
	}
	return q.Answer(http.StatusOK, body)
}

// sync waits until this server has applied all that was acknowledged, by any
// server, before the request; a local read here then shows it.
func sync(q *rest.Request) error {
	if err := q.Barrier(); err != nil {
		return err
	}
	zxid := ""
	q.View(func(v *server.View) { zxid = v.Zxid().String() })
	q.W.Header().Set(rest.HeaderConsistency, rest.ConsistencyLinearizable)
	return q.Answer(http.StatusOK, map[string]string{"zxid": zxid})
}
