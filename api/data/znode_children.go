package data

import (
	"math"
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/znode"
)

// childrenBody is a page of a znode's children.
type childrenBody struct {
	Path string `json:"path"`
	// Children are names, or with stat or data a rest.Child each.
	Children any        `json:"children"`
	Next     string     `json:"next,omitempty"` // the after= of the next page
	Stat     *rest.Stat `json:"stat"`           // the parent's
}

func getChildren(q *rest.Request, path string) (err error) {
	r := rest.PageRequest{Path: path, IDs: q.IDs, After: q.Query.Text("after"), Match: q.Query.Text("match")}
	if r.Stat, err = q.Query.Flag("stat"); err != nil {
		return err
	}
	if r.Data, err = q.Query.Flag("data"); err != nil {
		return err
	}
	if r.Limit, err = q.Query.Integer("limit", rest.MaxPage, 1, rest.MaxPage); err != nil {
		return err
	}
	offset, err := q.Query.Integer("offset", 0, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	var p rest.Page
	if q.Query.Has("offset") {
		if q.Query.Has("after") || q.Query.Has("match") {
			return rest.BadRequest("offset", "it cannot be combined with after or match, which are by name")
		}
		p = r.ReadAt(q, offset)
	} else {
		p = r.Read(q)
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
