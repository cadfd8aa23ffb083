package data

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// smallFamily is how many children are sorted while the state is held still.
const smallFamily = 4096

// childrenBody is a page of a znode's children.
type childrenBody struct {
	Path string `json:"path"`
	// Children are names, or with stat or data a rest.Child each.
	Children any        `json:"children"`
	Next     string     `json:"next,omitempty"` // the after= of the next page
	Stat     *rest.Stat `json:"stat"`           // the parent's
}

func getChildren(q *rest.Request, path string) (err error) {
	r := rest.PageRequest{Path: path, IDs: q.IDs, After: q.Query.Text("after")}
	if r.Stat, err = q.Query.Flag("stat"); err != nil {
		return err
	}
	if r.Data, err = q.Query.Flag("data"); err != nil {
		return err
	}
	if r.Limit, err = q.Query.Integer("limit", rest.MaxPage, 1, rest.MaxPage); err != nil {
		return err
	}
	var p rest.Page
	large := false
	q.View(func(v *server.View) {
		var names []string
		names, p.Parent, p.Code = v.Tree().Children(path, r.IDs)
		if large = len(names) > smallFamily; large {
			p.Names = names
			return
		}
		p.Names, p.Next = r.Choose(names)
		r.Fill(&p, v.Tree())
	})
	if large {
		// Sorting takes its time, so what the children are like is looked up
		// afterwards; who has gone meanwhile is left out.
		p.Names, p.Next = r.Choose(p.Names)
		q.View(func(v *server.View) { r.Fill(&p, v.Tree()) })
	}
	if p.Code != znode.OK {
		return rest.Fail(p.Code, path)
	}
	body := childrenBody{Path: path, Children: p.Names, Next: p.Next, Stat: rest.StatOf(&p.Parent)}
	if r.Stat || r.Data {
		body.Children = p.Children
	}
	return q.Answer(http.StatusOK, body)
}
