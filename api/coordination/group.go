package coordination

import (
	"errors"
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/memberdata"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// groupMember is a member of a group as JSON.
type groupMember struct {
	Name         string `json:"name"`
	Path         string `json:"path"`
	Session      string `json:"session,omitempty"`
	FencingToken string `json:"fencing_token,omitempty"`
	Since        string `json:"since,omitempty"`
	rest.Content
	Healthy *bool  `json:"healthy,omitempty"` // false if its data have the mark; else left out
	Reason  string `json:"reason,omitempty"`  // why it is not healthy
	Error   string `json:"error,omitempty"`   // why it may not be read
}

// show fills in the data, and what they say of the member's health.
func (m *groupMember) show(c rest.Content) {
	m.Content = c
	if c.Data == nil {
		return
	}
	if m.Reason = memberdata.Parse([]byte(*c.Data)).Unhealthy; m.Reason != "" { // base64 is never the mark
		m.Healthy = new(bool)
	}
}

// groupBody is a page of a group.
type groupBody struct {
	Path    string        `json:"path"`
	Members []groupMember `json:"members"`
	Next    string        `json:"next,omitempty"` // the after= of the next page
}

// getGroup lists a group's members with their data, by name. A group that does not
// exist has none.
func getGroup(q *rest.Request) error {
	path, err := groupPath(q)
	if err != nil {
		return err
	}
	r := rest.PageRequest{Path: path, IDs: q.IDs, Stat: true, Data: true, After: q.Query.Text("after")}
	if r.Limit, err = q.Query.Integer("limit", rest.MaxPage, 1, rest.MaxPage); err != nil {
		return err
	}
	p := r.Read(q)
	body := groupBody{Path: path, Members: []groupMember{}}
	switch p.Code {
	case znode.OK:
	case znode.ErrNoNode:
		if group := groupOfMember(q, path); group != "" {
			return shownBy(path, "/v1/groups"+group)
		}
		return q.Answer(http.StatusOK, body)
	default:
		return rest.Fail(p.Code, path)
	}
	for _, b := range p.Children {
		m := groupMember{Name: b.Name, Path: znode.Join(path, b.Name), Error: b.Error}
		m.show(b.Content)
		if b.Stat != nil {
			m.Session, m.FencingToken = b.Stat.EphemeralOwner, fencingToken(b.Czxid)
			m.Since = timeText(b.Stat.Ctime)
		}
		body.Members = append(body.Members, m)
	}
	body.Next = p.Next
	return q.Answer(http.StatusOK, body)
}

// groupOfMember is the group if a path that does not exist is one by which a member is put into
// it, /app/workers/members/w1; else empty.
func groupOfMember(q *rest.Request, path string) (group string) {
	members := znode.Parent(path)
	group = znode.Parent(members)
	if znode.Base(members) != "members" || group == znode.RootPath {
		return ""
	}
	q.View(func(v *server.View) {
		_, there := v.Tree().Exists(group, superuser())
		_, between := v.Tree().Exists(members, superuser())
		if there != znode.OK || between == znode.OK {
			group = ""
		}
	})
	return group
}

// groupPath is the path of the group in the URL.
func groupPath(q *rest.Request) (string, error) {
	path, err := q.ZnodePath()
	if err == nil && path == znode.RootPath {
		err = rest.BadRequest("path", "the root cannot be a group; name one, such as /v1/groups/app/workers")
	}
	return path, err
}

// memberPath is the path of the member in the URL.
func memberPath(q *rest.Request) (string, error) {
	dir, err := groupPath(q)
	if err != nil {
		return "", err
	}
	name := q.Vars["name"]
	if name == "" || rest.CheckPath("name", "/"+name) != nil || znode.Base("/"+name) != name {
		return "", rest.BadRequest("name", "%q is not a name: one without slashes, and not empty", name)
	}
	return znode.Join(dir, name), nil
}

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
			continue // it was deleted or changed since
		}
		if err != nil {
			return err
		}
		m := groupMember{
			Name: znode.Base(path), Path: path, Session: q.Session.String(),
			FencingToken: fencingToken(r.Stat.Czxid), Since: timeText(r.Stat.Ctime),
		}
		m.show(rest.ContentOf(data))
		return q.Answer(status, m)
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
		if q.Key == "" { // else the command must follow from the request alone
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
