package api

import (
	"net/http"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// aclDocument is a znode's ACL with its path and Stat, and what PUT ?acl takes.
type aclDocument struct {
	Path string     `json:"path"`
	ACL  []aclEntry `json:"acl"`
	Stat *stat      `json:"stat"`
}

func (q *request) getACL(path string) error {
	if v := q.query.text("acl"); v != "" {
		return badRequest("acl", "%q: to read the ACL it has no value", v)
	}
	var list []znode.ACL
	var st znode.Stat
	var code znode.Error
	q.look(func(v *server.View) { list, st, code = v.Tree().ACLOf(path, q.ids) })
	if code != znode.OK {
		return failure{code, path}
	}
	return q.answer(http.StatusOK, aclDocument{path, aclBody(list), statOf(&st)})
}

// setACL sets the ACL that ?acl= gives or, when that is empty, the one of the body.
func (q *request) setACL(path string) error {
	err := q.refuse("If-Match", "an ETag is about the data; use version= with stat.aversion")
	if err != nil {
		return err
	}
	c := state.Command{Op: state.OpSetACL, Path: path}
	if c.Version, err = q.query.version("version"); err != nil {
		return err
	}
	if c.ACL, err = q.newACL(); err != nil {
		return err
	}
	r, err := q.do(&c)
	if err != nil {
		return err
	}
	return q.changed(path, &r)
}

func (q *request) newACL() ([]znode.ACL, error) {
	if text := q.query.text("acl"); text != "" {
		if q.http.ContentLength != 0 {
			return nil, badRequest("acl", "with it PUT sets the ACL, and the body would be lost; "+
				"set the data by a PUT of its own")
		}
		return parseACL("acl", text)
	}
	var doc aclDocument
	if err := q.decode(q.door.cfg.MaxBody, &doc); err != nil {
		return nil, err
	}
	if len(doc.ACL) == 0 || len(doc.ACL) > maxACL {
		return nil, badACL("acl", "give 1 to %d entries, as ?acl=scheme:id:perms or as the body "+
			`{"acl": [{"scheme", "id", "perms"}]}`, maxACL)
	}
	var list []znode.ACL
	for _, e := range doc.ACL {
		a, err := makeACL("acl", e)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}
