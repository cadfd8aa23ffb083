package coordination

import (
	"errors"
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// joinGroup makes a member of a group, as long as the session lives; or changes its
// data. The znode is that of Curator's GroupMember.
func joinGroup(q *rest.Request) error {
	path, err := memberPath(q)
	if err != nil {
		return err
	}
	if err := q.NeedSession(); err != nil {
		return err
	}
	acl, err := q.Query.ACL("acl")
	if err != nil {
		return err
	}
	data, err := q.Data()
	if err != nil {
		return err
	}
	for range rest.MaxTries {
		r, err := createInContainer(q, &state.Command{
			Op: state.OpCreate, Path: path, Data: data, ACL: acl,
			Mode: znode.Ephemeral, Kind: znode.CreatePlain,
		})
		status := http.StatusCreated
		if r.Code == znode.ErrNodeExists {
			status = http.StatusOK
			r, err = changeMember(q, path, data)
		}
		var f rest.Failure
		if errors.As(err, &f) && (f.Code == znode.ErrNoNode || f.Code == znode.ErrBadVersion) {
			continue // it has gone, or been changed, since
		}
		if err != nil {
			return err
		}
		return q.Answer(status, groupMember{
			Name: znode.Base(path), Path: path, Session: q.Session.String(),
			FencingToken: fencingToken(r.Stat.Czxid), Since: timeText(r.Stat.Ctime), Content: rest.ContentOf(data),
		})
	}
	return rest.TooMany(1, "%s: it is created and deleted too often by others", path)
}

// changeMember sets the data of a member that is the session's own.
func changeMember(q *rest.Request, path string, data []byte) (state.Result, error) {
	c := state.Command{Op: state.OpSetData, Path: path, Data: data, Version: znode.AnyVersion}
	if !q.Repeats() {
		st, err := ownMember(q, path)
		if err != nil {
			return state.Result{}, err
		}
		if q.Key == "" { // else what is sent must follow from the request alone
			c.Mzxid = st.Mzxid
		}
	}
	r, err := q.Do(&c)
	if err == nil && r.Code != znode.OK {
		err = rest.Fail(r.Code, path)
	}
	return r, err
}

// ownMember looks at a member, which must be the session's own.
func ownMember(q *rest.Request, path string) (st znode.Stat, err error) {
	var code znode.Error
	q.View(func(v *server.View) { st, code = v.Tree().Exists(path, superuser()) })
	switch {
	case code != znode.OK:
		return st, rest.Fail(code, path)
	case st.EphemeralOwner == q.Session:
		return st, nil
	}
	return st, notYours(q, path, st.EphemeralOwner)
}

// leaveGroup ends a membership, which must be the session's own.
func leaveGroup(q *rest.Request) error {
	path, err := memberPath(q)
	if err != nil {
		return err
	}
	if err := q.NeedSession(); err != nil {
		return err
	}
	// It may have been made through another server a moment ago.
	if err := q.Barrier(); err != nil {
		return err
	}
	if !q.Repeats() {
		if _, err := ownMember(q, path); err != nil {
			return err
		}
	}
	r, err := q.Do(&state.Command{Op: state.OpDelete, Path: path, Version: znode.AnyVersion})
	if err != nil {
		return err
	}
	return rest.Deleted(q, r.Code, path)
}
