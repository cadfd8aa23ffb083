package data

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// aclDocument is a znode's ACL with its path and Stat, and what PUT ?acl takes.
type aclDocument struct {
	Path string          `json:"path"`
	ACL  []rest.ACLEntry `json:"acl"`
	Stat *rest.Stat      `json:"stat"`
}

func getACL(q *rest.Request, path string) error {
	if v := q.Query.Text("acl"); v != "" {
		return rest.BadRequest("acl", "%q: to read the ACL it has no value", v)
	}
	var list []znode.ACL
	var st znode.Stat
	var code znode.Error
	q.View(func(v *server.View) { list, st, code = v.Tree().ACLOf(path, q.IDs) })
	if code != znode.OK {
		return rest.Fail(code, path)
	}
	return q.Answer(http.StatusOK, aclDocument{path, rest.ACLBody(list), rest.StatOf(&st)})
}

// setACL sets the ACL that ?acl= gives or, when that is empty, the one of the body.
func setACL(q *rest.Request, path string) error {
	err := refuse(q, "If-Match", "an ETag is about the data; use version= with stat.aversion")
	if err != nil {
		return err
	}
	c := state.Command{Op: state.OpSetACL, Path: path}
	if c.Version, err = q.Query.Version("version"); err != nil {
		return err
	}
	if c.ACL, err = newACL(q); err != nil {
		return err
	}
	r, err := q.Do(&c)
	if err != nil {
		return err
	}
	return changed(q, path, &r)
}

func newACL(q *rest.Request) ([]znode.ACL, error) {
	if text := q.Query.Text("acl"); text != "" {
		if q.HTTP.ContentLength != 0 {
			return nil, rest.BadRequest("acl", "with acl= PUT sets the ACL alone, and ignores the body; "+
				"set the data by a PUT of its own")
		}
		return rest.ParseACL("acl", text)
	}
	var doc aclDocument
	if err := q.Decode(q.Core.Config.MaxBody, &doc); err != nil {
		return nil, err
	}
	if len(doc.ACL) == 0 || len(doc.ACL) > znode.MaxACL {
		return nil, rest.BadACL("acl", "give 1 to %d entries, as ?acl=scheme:id:perms or as the body "+
			`{"acl": [{"scheme", "id", "perms"}]}`, znode.MaxACL)
	}
	var list []znode.ACL
	for _, e := range doc.ACL {
		a, err := rest.MakeACL("acl", e)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}
