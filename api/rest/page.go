package rest

import (
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

const (
	// MaxPage is how many children one answer has at most, and what it has when
	// limit= does not say: more make a client wait and this server's memory grow.
	MaxPage = 10_000
	// maxPageBytes bounds the names and data in one answer; the page then ends
	// early. One child is always in it.
	maxPageBytes = 8 << 20
)

// Child is a child of a znode as JSON.
type Child struct {
	Name string `json:"name"`
	Content
	Stat  *Stat      `json:"stat,omitempty"`
	Czxid znode.Zxid `json:"-"`
	Error string     `json:"error,omitempty"` // why it may not be read
}

// PageRequest says which children, and what of them.
type PageRequest struct {
	Path       string
	Stat, Data bool
	Limit      int
	After      string
	IDs        []znode.ID
}

// Page is the answer to it.
type Page struct {
	Names    []string
	Children []Child
	Next     string
	Parent   znode.Stat
	Code     znode.Error
}

// Choose sorts the names by their bytes and takes the page's. next is empty on the
// last page.
func (r *PageRequest) Choose(names []string) (chosen []string, next string) {
	chosen = slices.DeleteFunc(names, func(name string) bool { return name <= r.After })
	if r.After == "" {
		chosen = names
	}
	slices.Sort(chosen)
	size := 0
	for i, name := range chosen {
		if size += len(name); i > 0 && (i == r.Limit || size > maxPageBytes) {
			return chosen[:i], chosen[i-1]
		}
	}
	return chosen, ""
}

// Fill looks up what was asked for about the children of the page.
func (r *PageRequest) Fill(p *Page, tree *znode.Tree) {
	if p.Code != znode.OK || !r.Stat && !r.Data {
		return
	}
	p.Children = make([]Child, 0, len(p.Names))
	size := 0
	for i, name := range p.Names {
		data, st, code := tree.Get(znode.Join(r.Path, name), r.IDs)
		if code == znode.ErrNoNode {
			continue
		}
		if size += len(name) + len(data); r.Data && i > 0 && size > maxPageBytes {
			p.Next = p.Names[i-1]
			return
		}
		b := Child{Name: name, Czxid: st.Czxid}
		switch {
		case code != znode.OK:
			b.Error = code.Name()
		default:
			if r.Stat {
				b.Stat = StatOf(&st)
			}
			if r.Data {
				b.Content = ContentOf(data)
			}
		}
		p.Children = append(p.Children, b)
	}
}
