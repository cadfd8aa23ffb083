package api

import (
	"net/http"
	"slices"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// maxPage is how many children one answer has at most, and what it has when
	// limit= does not say: more make a client wait and this server's memory grow.
	maxPage = 10_000
	// maxPageBytes bounds the names and data in one answer; the page then ends
	// early. One child is always in it.
	maxPageBytes = 8 << 20
	// smallFamily is how many children are sorted while the state is held still.
	smallFamily = 4096
)

// childrenBody is a page of a znode's children.
type childrenBody struct {
	Path string `json:"path"`
	// Children are names, or with stat or data childBody.
	Children any    `json:"children"`
	Next     string `json:"next,omitempty"` // the after= of the next page
	Stat     *stat  `json:"stat"`           // the parent's
}

type childBody struct {
	Name string `json:"name"`
	content
	Stat  *stat `json:"stat,omitempty"`
	czxid znode.Zxid
	Error string `json:"error,omitempty"` // why it may not be read
}

// pageRequest says which children, and what of them.
type pageRequest struct {
	path       string
	stat, data bool
	limit      int
	after      string
	ids        []znode.ID
}

// page is the answer to it.
type page struct {
	names  []string
	bodies []childBody
	next   string
	parent znode.Stat
	code   znode.Error
}

func (q *request) getChildren(path string) (err error) {
	r := pageRequest{path: path, ids: q.ids, after: q.query.text("after")}
	if r.stat, err = q.query.flag("stat"); err != nil {
		return err
	}
	if r.data, err = q.query.flag("data"); err != nil {
		return err
	}
	if r.limit, err = q.query.integer("limit", maxPage, 1, maxPage); err != nil {
		return err
	}
	var p page
	large := false
	q.look(func(v *server.View) {
		var names []string
		names, p.parent, p.code = v.Tree().Children(path, r.ids)
		if large = len(names) > smallFamily; large {
			p.names = names
			return
		}
		p.names, p.next = r.choose(names)
		r.fill(&p, v.Tree())
	})
	if large {
		// Sorting takes its time, so what the children are like is looked up
		// afterwards; who has gone meanwhile is left out.
		p.names, p.next = r.choose(p.names)
		q.look(func(v *server.View) { r.fill(&p, v.Tree()) })
	}
	if p.code != znode.OK {
		return failure{p.code, path}
	}
	body := childrenBody{Path: path, Children: p.names, Next: p.next, Stat: statOf(&p.parent)}
	if r.stat || r.data {
		body.Children = p.bodies
	}
	return q.answer(http.StatusOK, body)
}

// choose sorts the names by their bytes and takes the page's. next is empty on the
// last page.
func (r *pageRequest) choose(names []string) (chosen []string, next string) {
	chosen = slices.DeleteFunc(names, func(name string) bool { return name <= r.after })
	if r.after == "" {
		chosen = names
	}
	slices.Sort(chosen)
	size := 0
	for i, name := range chosen {
		if size += len(name); i > 0 && (i == r.limit || size > maxPageBytes) {
			return chosen[:i], chosen[i-1]
		}
	}
	return chosen, ""
}

// fill looks up what was asked for about the children of the page.
func (r *pageRequest) fill(p *page, tree *znode.Tree) {
	if p.code != znode.OK || !r.stat && !r.data {
		return
	}
	p.bodies = make([]childBody, 0, len(p.names))
	size := 0
	for i, name := range p.names {
		data, st, code := tree.Get(znode.Join(r.path, name), r.ids)
		if code == znode.ErrNoNode {
			continue
		}
		if size += len(name) + len(data); r.data && i > 0 && size > maxPageBytes {
			p.next = p.names[i-1]
			return
		}
		b := childBody{Name: name, czxid: st.Czxid}
		switch {
		case code != znode.OK:
			b.Error = code.Name()
		default:
			if r.stat {
				b.Stat = statOf(&st)
			}
			if r.data {
				b.content = contentOf(data)
			}
		}
		p.bodies = append(p.bodies, b)
	}
}
