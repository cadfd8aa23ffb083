package api

import (
	"net/http"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// getZnode reads a znode, its children or its ACL.
func (q *request) getZnode() error {
	path, err := q.znodePath()
	if err != nil {
		return err
	}
	children, err := q.query.flag("children")
	if err != nil {
		return err
	}
	switch {
	case q.query.has("acl") && (children || q.query.has("raw")):
		return badRequest("acl", "it is an answer of its own")
	case q.query.has("raw") && children:
		return badRequest("raw", "it means the data; children come as JSON")
	case children:
		return q.getChildren(path)
	}
	if err := q.query.only("children", "stat", "data", "limit", "after"); err != nil {
		return err
	}
	if q.query.has("acl") {
		return q.getACL(path)
	}
	return q.getData(path)
}

func (q *request) getData(path string) error {
	raw, err := q.query.flag("raw")
	if err != nil {
		return err
	}
	var data []byte
	var st znode.Stat
	var code znode.Error
	q.look(func(v *server.View) { data, st, code = v.Tree().Get(path, q.ids) })
	if code != znode.OK {
		return failure{code, path}
	}
	q.setStat(&st)
	switch {
	case q.matchesNone(st.Mzxid):
		q.begin(http.StatusNotModified)
		return nil
	case raw:
		q.sendBytes(http.StatusOK, "application/octet-stream", data)
		return nil
	}
	return q.answer(http.StatusOK, znodeBody{
		Path: path, content: contentOf(data), Stat: statOf(&st),
	})
}
