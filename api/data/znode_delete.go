package data

import (
	"fmt"
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// maxOps is how many operations a transaction has at most: everybody else waits
// while it is applied, which takes about a microsecond each.
const maxOps = state.MaxSubtree

// deleteZnode deletes a znode, with recursive=true all below it, too.
func deleteZnode(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	switch path {
	case znode.RootPath, znode.SystemPath, znode.QuotaPath, znode.ConfigPath:
		p := rest.BadRequest("path", "%s cannot be deleted: every tree has it", path)
		p.Path = path
		return p
	}
	if err := refuse(q, "If-None-Match", "a delete takes If-Match, or version="); err != nil {
		return err
	}
	recursive, err := q.Query.Flag("recursive")
	if err != nil {
		return err
	}
	c := state.Command{Op: state.OpDelete, Path: path}
	if err := guard(q, &c); err != nil {
		return err
	}
	if recursive {
		return deleteAll(q, &c)
	}
	r, err := q.Do(&c)
	if err != nil {
		return err
	}
	return rest.Deleted(q, r.Code, path)
}

// deleteAll deletes a znode and all below it in one transaction.
func deleteAll(q *rest.Request, c *state.Command) error {
	c.Op = state.OpDeleteAll
	r, err := q.Do(c)
	switch {
	case err != nil:
		return err
	case r.Code == znode.ErrNotEmpty:
		return &rest.Problem{
			Status: http.StatusConflict, Code: znode.ErrNotEmpty, Path: c.Path,
			Detail: fmt.Sprintf("%s: more than %d znodes, which is too much for one "+
				"transaction", c.Path, maxOps),
			Hint: "delete the parts of it first",
		}
	case r.Code != znode.OK:
		return rest.Fail(r.Code, r.Path)
	}
	return rest.Deleted(q, znode.OK, c.Path)
}
