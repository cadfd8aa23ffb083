package api

import (
	"errors"
	"net/http"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// setZnode changes a znode's data, or its ACL.
func (q *request) setZnode() error {
	path, err := q.znodePath()
	if err != nil {
		return err
	}
	create, err := q.query.flag("create")
	if err != nil {
		return err
	}
	absent, err := q.onlyIfAbsent()
	if err != nil {
		return err
	}
	if q.query.has("acl") && !create && !absent {
		return q.setACL(path)
	}
	parents, err := q.query.flag("parents")
	if err != nil {
		return err
	}
	if parents && !create && !absent {
		return badRequest("parents", "it means something with create=true only")
	}
	c := state.Command{Op: state.OpSetData, Path: path}
	if err := q.guard(&c); err != nil {
		return err
	}
	guarded := q.query.has("version") || len(q.http.Header.Values("If-Match")) > 0
	if guarded && (create || absent) {
		return badRequest("create", "a znode that is to be created has no version yet: leave out "+
			"version= and If-Match")
	}
	if c.Data, err = q.data(); err != nil {
		return err
	}
	if !create && !absent {
		r, err := q.do(&c)
		if err != nil {
			return err
		}
		return q.changed(path, &r)
	}
	acl, err := q.query.acl("acl")
	if err != nil {
		return err
	}
	return q.setOrCreate(&c, acl, parents, absent)
}

// setOrCreate sets the data, or creates the znode when it is missing. absent skips
// the former: then a znode that exists fails the precondition.
func (q *request) setOrCreate(set *state.Command, acl []znode.ACL, parents, absent bool) error {
	create := state.Command{Op: state.OpCreate, Path: set.Path, Data: set.Data, ACL: acl}
	for range maxTries {
		if !absent {
			one := *set
			r, err := q.do(&one)
			if err != nil {
				return err
			}
			if r.Code != znode.ErrNoNode {
				return q.changed(set.Path, &r)
			}
		}
		r, err := q.createMaybeParents(&create, parents)
		if err != nil {
			return err
		}
		switch {
		case r.Code == znode.OK:
			return q.created(r.Path, &r.Stat)
		case r.Code != znode.ErrNodeExists:
			return createFailure(r.Code, set.Path)
		case absent:
			p := explain(znode.ErrNodeExists, set.Path, false)
			p.Status, p.Code, p.Path = http.StatusPreconditionFailed, znode.ErrNodeExists, set.Path
			return p
		}
	}
	return tooMany(1, "%s: it comes and goes too fast", set.Path)
}

func (q *request) createMaybeParents(c *state.Command, parents bool) (state.OpResult, error) {
	if !parents {
		one := *c
		r, err := q.do(&one)
		return state.OpResult{Code: r.Code, Path: r.Path, Stat: r.Stat}, err
	}
	r, err := q.createWithParents(c)
	var f failure
	if errors.As(err, &f) && f.code == znode.ErrNodeExists && f.path == c.Path {
		return state.OpResult{Code: f.code}, nil
	}
	return r, err
}

// changed answers with the outcome of a change of a znode.
func (q *request) changed(path string, r *state.Result) error {
	if r.Code != znode.OK {
		return failure{r.Code, path}
	}
	q.setStat(&r.Stat)
	return q.answer(http.StatusOK, znodeBody{Path: path, Stat: statOf(&r.Stat)})
}
