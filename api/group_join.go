package api

import (
	"errors"
	"net/http"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// joinGroup makes a member of a group, as long as the session lives; or changes its
// data. The znode is that of Curator's GroupMember.
func (q *request) joinGroup() error {
	path, err := q.memberPath()
	if err != nil {
		return err
	}
	if err := q.needSession(); err != nil {
		return err
	}
	acl, err := q.query.acl("acl")
	if err != nil {
		return err
	}
	data, err := q.data()
	if err != nil {
		return err
	}
	for range maxTries {
		r, err := q.createInContainer(&state.Command{
			Op: state.OpCreate, Path: path, Data: data, ACL: acl,
			Mode: znode.Ephemeral, Kind: znode.CreatePlain,
		})
		status := http.StatusCreated
		if r.Code == znode.ErrNodeExists {
			status = http.StatusOK
			r, err = q.changeMember(path, data)
		}
		var f failure
		if errors.As(err, &f) && (f.code == znode.ErrNoNode || f.code == znode.ErrBadVersion) {
			continue // it has gone, or been changed, since
		}
		if err != nil {
			return err
		}
		return q.answer(status, groupMember{
			Name: znode.Base(path), Path: path, Session: q.session.String(),
			FencingToken: fencingToken(r.Stat.Czxid), Since: timeText(r.Stat.Ctime), content: contentOf(data),
		})
	}
	return tooMany(1, "%s: it comes and goes too fast", path)
}

// changeMember sets the data of a member that is the session's own.
func (q *request) changeMember(path string, data []byte) (state.Result, error) {
	c := state.Command{Op: state.OpSetData, Path: path, Data: data, Version: znode.AnyVersion}
	if !q.repeats() {
		st, err := q.ownMember(path)
		if err != nil {
			return state.Result{}, err
		}
		if q.key == "" { // else what is sent must follow from the request alone
			c.Mzxid = st.Mzxid
		}
	}
	r, err := q.do(&c)
	if err == nil && r.Code != znode.OK {
		err = failure{r.Code, path}
	}
	return r, err
}

// ownMember looks at a member, which must be the session's own.
func (q *request) ownMember(path string) (st znode.Stat, err error) {
	var code znode.Error
	q.look(func(v *server.View) { st, code = v.Tree().Exists(path, superuser()) })
	switch {
	case code != znode.OK:
		return st, failure{code, path}
	case st.EphemeralOwner == q.session:
		return st, nil
	case st.EphemeralOwner == 0:
		return st, notYours(path, "no session, it is not ephemeral")
	}
	return st, notYours(path, "session "+st.EphemeralOwner.String())
}
