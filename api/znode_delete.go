package api

import (
	"fmt"
	"net/http"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// maxOps is how many operations a transaction has at most: everybody else waits
// while it is applied, which takes about a microsecond each.
const maxOps = state.MaxSubtree

// deleteZnode deletes a znode, with recursive=true all below it, too.
func (q *request) deleteZnode() error {
	path, err := q.znodePath()
	if err != nil {
		return err
	}
	switch path {
	case znode.RootPath, znode.SystemPath, znode.QuotaPath, znode.ConfigPath:
		p := badRequest("path", "%s cannot be deleted: every tree has it", path)
		p.Path = path
		return p
	}
	if err := q.refuse("If-None-Match", "a change knows If-Match, or version="); err != nil {
		return err
	}
	recursive, err := q.query.flag("recursive")
	if err != nil {
		return err
	}
	c := state.Command{Op: state.OpDelete, Path: path}
	if err := q.guard(&c); err != nil {
		return err
	}
	if recursive {
		return q.deleteAll(&c)
	}
	r, err := q.do(&c)
	if err != nil {
		return err
	}
	return q.deleted(r.Code, path)
}

func (q *request) deleted(code znode.Error, path string) error {
	switch code {
	case znode.OK:
	case znode.ErrNoAuth:
		return failure{code, znode.Parent(path)} // whose permission it takes
	default:
		return failure{code, path}
	}
	q.begin(http.StatusNoContent)
	return nil
}

// deleteAll deletes a znode and all below it in one transaction.
func (q *request) deleteAll(c *state.Command) error {
	c.Op = state.OpDeleteAll
	r, err := q.do(c)
	switch {
	case err != nil:
		return err
	case r.Code == znode.ErrNotEmpty:
		return &problem{
			Status: http.StatusConflict, Code: znode.ErrNotEmpty, Path: c.Path,
			Detail: fmt.Sprintf("%s: more than %d znodes, which is too much for one "+
				"transaction", c.Path, maxOps),
			Hint: "delete the parts of it first",
		}
	case r.Code != znode.OK:
		return failure{r.Code, r.Path}
	}
	return q.deleted(znode.OK, c.Path)
}
