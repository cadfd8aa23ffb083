package api

import (
	"net/http"

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
	content
	Error string `json:"error,omitempty"` // why it may not be read
}

// groupBody is a page of a group.
type groupBody struct {
	Path    string        `json:"path"`
	Members []groupMember `json:"members"`
	Next    string        `json:"next,omitempty"` // the after= of the next page
}

// getGroup lists a group's members with their data, by name. A group that does not
// exist has none.
func (q *request) getGroup() error {
	path, err := q.groupPath()
	if err != nil {
		return err
	}
	r := pageRequest{path: path, ids: q.ids, stat: true, data: true, after: q.query.text("after")}
	if r.limit, err = q.query.integer("limit", maxPage, 1, maxPage); err != nil {
		return err
	}
	var p page
	var names []string
	q.look(func(v *server.View) { names, _, p.code = v.Tree().Children(path, r.ids) })
	body := groupBody{Path: path, Members: []groupMember{}}
	switch p.code {
	case znode.OK:
	case znode.ErrNoNode:
		if group := q.groupOfMember(path); group != "" {
			return shownBy(path, "/v1/groups"+group)
		}
		return q.answer(http.StatusOK, body)
	default:
		return failure{p.code, path}
	}
	p.names, p.next = r.choose(names)
	q.look(func(v *server.View) { r.fill(&p, v.Tree()) })
	for _, b := range p.bodies {
		m := groupMember{
			Name: b.Name, Path: znode.Join(path, b.Name), content: b.content, Error: b.Error,
		}
		if b.Stat != nil {
			m.Session, m.FencingToken = b.Stat.EphemeralOwner, fencingToken(b.czxid)
			m.Since = timeText(b.Stat.Ctime)
		}
		body.Members = append(body.Members, m)
	}
	body.Next = p.next
	return q.answer(http.StatusOK, body)
}

// groupOfMember is the group if a path that does not exist is one by which a member is put into
// it, /app/workers/members/w1; else empty.
func (q *request) groupOfMember(path string) (group string) {
	members := znode.Parent(path)
	group = znode.Parent(members)
	if znode.Base(members) != "members" || group == znode.RootPath {
		return ""
	}
	q.look(func(v *server.View) {
		_, there := v.Tree().Exists(group, superuser())
		_, between := v.Tree().Exists(members, superuser())
		if there != znode.OK || between == znode.OK {
			group = ""
		}
	})
	return group
}

// groupPath is the path of the group in the URL.
func (q *request) groupPath() (string, error) {
	path, err := q.znodePath()
	if err == nil && path == znode.RootPath {
		err = badRequest("path", "the root cannot be a group; name one, such as /v1/groups/app/workers")
	}
	return path, err
}

// memberPath is the path of the member in the URL.
func (q *request) memberPath() (string, error) {
	dir, err := q.groupPath()
	if err != nil {
		return "", err
	}
	name := q.vars["name"]
	if name == "" || checkPath("name", "/"+name) != nil || znode.Base("/"+name) != name {
		return "", badRequest("name", "%q is not a name: one without slashes, and not empty", name)
	}
	return znode.Join(dir, name), nil
}
