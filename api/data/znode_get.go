package data

import (
	"net/http"

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
	case children:
		return getChildren(q, path)
	}
	if err := q.Query.Only("children", "stat", "data", "limit", "after"); err != nil {
		return err
	}
	if q.Query.Has("acl") {
		return getACL(q, path)
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
