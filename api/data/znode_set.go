package data

import (
	"errors"
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// setZnode changes a znode's data, or its ACL.
func setZnode(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	create, err := q.Query.Flag("create")
	if err != nil {
		return err
	}
	absent, err := onlyIfAbsent(q)
	if err != nil {
		return err
	}
	if q.Query.Has("acl") && !create && !absent {
		return setACL(q, path)
	}
	parents, err := q.Query.Flag("parents")
	if err != nil {
		return err
	}
	if parents && !create && !absent {
		return rest.BadRequest("parents", "it can be used with create=true only")
	}
	c := state.Command{Op: state.OpSetData, Path: path}
	if err := guard(q, &c); err != nil {
		return err
	}
	guarded := q.Query.Has("version") || len(q.HTTP.Header.Values("If-Match")) > 0
	if guarded && (create || absent) {
		return rest.BadRequest("create", "a znode that is to be created has no version yet: leave out "+
			"version= and If-Match")
	}
	if c.Data, err = q.Data(); err != nil {
		return err
	}
	if !create && !absent {
		r, err := q.Do(&c)
		if err != nil {
			return err
		}
		return changed(q, path, &r)
	}
	acl, err := q.Query.ACL("acl")
	if err != nil {
		return err
	}
	return setOrCreate(q, &c, acl, parents, absent)
}

// setOrCreate sets the data, or creates the znode when it is missing. absent skips
// the former: then a znode that exists fails the precondition.
func setOrCreate(q *rest.Request, set *state.Command, acl []znode.ACL, parents, absent bool) error {
	create := state.Command{Op: state.OpCreate, Path: set.Path, Data: set.Data, ACL: acl}
	for range rest.MaxTries {
		if !absent {
			one := *set
			r, err := q.Do(&one)
			if err != nil {
				return err
			}
			if r.Code != znode.ErrNoNode {
				return changed(q, set.Path, &r)
			}
		}
		r, err := createMaybeParents(q, &create, parents)
		if err != nil {
			return err
		}
		switch {
		case r.Code == znode.OK:
			return created(q, r.Path, &r.Stat)
		case r.Code != znode.ErrNodeExists:
			return rest.CreateFailure(r.Code, set.Path)
		case absent:
			p := rest.Explain(znode.ErrNodeExists, set.Path, false)
			p.Status, p.Code, p.Path = http.StatusPreconditionFailed, znode.ErrNodeExists, set.Path
			return p
		}
	}
	return rest.TooMany(1, "%s: it is created and deleted too often by others", set.Path)
}

func createMaybeParents(q *rest.Request, c *state.Command, parents bool) (state.OpResult, error) {
	if !parents {
		one := *c
		r, err := q.Do(&one)
		return state.OpResult{Code: r.Code, Path: r.Path, Stat: r.Stat}, err
	}
	r, err := createWithParents(q, c)
	var f rest.Failure
	if errors.As(err, &f) && f.Code == znode.ErrNodeExists && f.Path == c.Path {
		return state.OpResult{Code: f.Code}, nil
	}
	return r, err
}

// changed answers with the outcome of a change of a znode.
func changed(q *rest.Request, path string, r *state.Result) error {
	if r.Code != znode.OK {
		return rest.Fail(r.Code, path)
	}
	setStat(q, &r.Stat)
	return q.Answer(http.StatusOK, znodeBody{Path: path, Stat: rest.StatOf(&r.Stat)})
}
