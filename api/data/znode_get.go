package data

import (
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// getZnode reads a znode, its children or its ACL.
func getZnode(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	children, err := q.Query.Flag("children")
	if err != nil {
		return err
	}
	switch {
	case q.Query.Has("acl") && (children || q.Query.Has("raw")):
		return rest.BadRequest("acl", "it cannot be combined with raw or children")
	case q.Query.Has("raw") && children:
		return rest.BadRequest("raw", "it cannot be combined with children, which are JSON")
	case q.Query.Has("about") && (children || q.Query.Has("raw") || q.Query.Has("acl")):
		return rest.BadRequest("about", "it cannot be combined with raw, children or acl")
	case children:
		return getChildren(q, path)
	}
	if err := q.Query.Only("children", "stat", "data", "limit", "after", "match", "offset"); err != nil {
		return err
	}
	switch {
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

// aboutBody is what a znode is.
type aboutBody struct {
	Path  string     `json:"path"`
	Kind  string     `json:"kind"`
	TTL   string     `json:"ttl,omitempty"`
	May   string     `json:"may"` // the permissions of who asks
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
