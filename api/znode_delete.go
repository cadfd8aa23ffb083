package api

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// maxOps is how many operations a transaction has at most: everybody else waits
// while it is applied, which takes about a microsecond each.
const maxOps = 10_000

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
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// deleteAll deletes a znode and all below it in one transaction. When znodes come
// or go below it meanwhile, it tries again.
func (q *request) deleteAll(c *state.Command) error {
	for range maxTries {
		paths, err := q.subtree(c.Path)
		if err != nil {
			return err
		}
		multi := state.Command{Op: state.OpMulti}
		for _, path := range paths {
			multi.Ops = append(multi.Ops, state.Command{
				Op: state.OpDelete, Path: path, Version: znode.AnyVersion,
			})
		}
		multi.Ops = append(multi.Ops, *c)
		r, err := q.do(&multi)
		if r.Key == state.KeyMismatch {
			return q.deletedBefore(c.Path, err)
		}
		if err != nil {
			return err
		}
		i := culprit(r.Multi)
		if i < 0 {
			return q.deleted(znode.OK, c.Path)
		}
		below := i < len(paths)
		code := r.Multi[i].Code
		if code == znode.ErrNotEmpty || below && code == znode.ErrNoNode {
			continue
		}
		return q.deleted(code, multi.Ops[i].Path)
	}
	return tooMany(1, "%s: znodes come and go below it too fast", c.Path)
}

// deletedBefore answers a request whose key is known with another list of znodes.
// The list follows from what there is below the path, so that says nothing by
// itself: if the path has gone, what the request asked for has happened.
func (q *request) deletedBefore(path string, mismatch error) error {
	var code znode.Error
	q.look(func(v *server.View) { _, code = v.Tree().Exists(path, q.ids) })
	if code != znode.ErrNoNode {
		return mismatch
	}
	q.w.Header().Set(headerReplayed, "true")
	return q.deleted(znode.OK, path)
}

// subtree lists what is below a path, children before their parents. A path that
// does not exist has nothing below it.
func (q *request) subtree(path string) (paths []string, err error) {
	q.look(func(v *server.View) { paths, err = listBelow(v.Tree(), path, q.ids) })
	slices.Reverse(paths)
	return paths, err
}

// listBelow lists what is below a path, parents before their children.
func listBelow(tree *znode.Tree, path string, ids []znode.ID) (paths []string, err error) {
	pending := []string{path}
	for len(pending) > 0 {
		path := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		st, code := tree.Exists(path, ids)
		switch {
		case code == znode.ErrNoNode && len(paths) == 0:
			return nil, nil
		case code != znode.OK:
			return nil, failure{code, path}
		case len(paths)+len(pending)+int(st.NumChildren) >= maxOps:
			return nil, &problem{
				Status: http.StatusConflict, Code: znode.ErrNotEmpty, Path: path,
				Detail: fmt.Sprintf("%s: more than %d znodes, which is too much for one "+
					"transaction", path, maxOps),
				Hint: "delete the parts of it first",
			}
		}
		names, _, _ := tree.Children(path, ids)
		for _, name := range names {
			child := znode.Join(path, name)
			paths = append(paths, child)
			pending = append(pending, child)
		}
	}
	return paths, nil
}
