package rest

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// Stat is a znode's Stat as JSON: ids in hexadecimal, times in milliseconds since
// the epoch, as ZooKeeper's tools have them.
type Stat struct {
	Czxid          string `json:"czxid"`
	Mzxid          string `json:"mzxid"`
	Pzxid          string `json:"pzxid"`
	Ctime          int64  `json:"ctime"`
	Mtime          int64  `json:"mtime"`
	Version        int32  `json:"version"`
	Cversion       int32  `json:"cversion"`
	Aversion       int32  `json:"aversion"`
	EphemeralOwner string `json:"ephemeralOwner"`
	DataLength     int32  `json:"dataLength"`
	NumChildren    int32  `json:"numChildren"`
}

// StatOf returns a Stat as JSON has it.
func StatOf(s *znode.Stat) *Stat {
	return &Stat{
		Czxid: s.Czxid.String(), Mzxid: s.Mzxid.String(), Pzxid: s.Pzxid.String(),
		Ctime: s.Ctime, Mtime: s.Mtime, Version: int32(s.Version), Cversion: int32(s.Cversion),
		Aversion: int32(s.Aversion), EphemeralOwner: s.EphemeralOwner.String(),
		DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
}

// Content is data as JSON: text where it is text, else base64.
type Content struct {
	Data     *string `json:"data,omitempty"`
	Encoding string  `json:"encoding,omitempty"`
}

// The encodings of data in JSON.
const (
	encodingText   = "utf-8"
	encodingBase64 = "base64"
)

// ContentOf returns data as JSON has it.
func ContentOf(data []byte) Content {
	text, encoding := string(data), encodingText
	if !utf8.Valid(data) {
		text, encoding = base64.StdEncoding.EncodeToString(data), encodingBase64
	}
	return Content{&text, encoding}
}

// Decode is the inverse of ContentOf; no data is empty data.
func (c Content) Decode(param string) ([]byte, error) {
	if c.Data == nil {
		return []byte{}, nil
	}
	switch c.Encoding {
	case "", encodingText:
		return []byte(*c.Data), nil
	case encodingBase64:
		b, err := base64.StdEncoding.DecodeString(*c.Data)
		if err != nil {
			return nil, BadRequest(param, "data: %v", err)
		}
		return b, nil
	}
	return nil, BadRequest(param, "encoding: %q is neither %s nor %s", c.Encoding, encodingText,
		encodingBase64)
}

const (
	// MaxPage is how many children one answer has at most, and without limit=:
	// more make a client wait and this server's memory grow.
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

// PageRequest selects children and what to read of them.
type PageRequest struct {
	Path       string
	Stat, Data bool
	Limit      int
	After      string
	Match      string       // what the names contain
	Types      []znode.Mode // nil: all; else these, of children that may be read
	IDs        []znode.ID

	first []string // the first names that were found, in no order
	bound string   // none after it is among them; empty: not known yet
}

// Page is the answer to it.
type Page struct {
	Names    []string
	Children []Child
	Next     string
	Parent   znode.Stat
	Code     znode.Error
}

// visitAtOnce is how many children are looked at while the state is held still.
const visitAtOnce = 4096

// Read reads a page of children, by name. It looks at all of them, a few thousand at a time, copies none, and keeps no
// more than two pages of names. Children that are created or deleted meanwhile are in the page or not.
func (r *PageRequest) Read(q *Request) (p Page) {
	for at, tree := -1, (*znode.Tree)(nil); at != 0 && p.Code == znode.OK; {
		q.View(func(v *server.View) {
			if tree != v.Tree() { // the first time, or a snapshot has replaced it: its lists are in another order
				tree, r.first, r.bound = v.Tree(), []string{}, ""
				p.Parent, p.Code = tree.Exists(r.Path, r.IDs)
				at = int(p.Parent.NumChildren)
			}
			from := max(at-visitAtOnce, 0)
			if p.Code == znode.OK {
				p.Parent, p.Code = tree.VisitChildren(r.Path, from, at, r.IDs, func(name string) {
					r.consider(tree, name)
				})
			}
			if at = from; at == 0 {
				p.Names, p.Next = r.choose()
				r.fill(&p, tree)
			}
		})
	}
	return p
}

// consider keeps a name if it may be one of the page's.
func (r *PageRequest) consider(tree *znode.Tree, name string) {
	if r.After != "" && name <= r.After || !strings.Contains(name, r.Match) || r.bound != "" && name > r.bound {
		return
	}
	if r.Types != nil {
		mode, code := tree.ModeOf(znode.Join(r.Path, name), r.IDs)
		if code != znode.OK || !slices.Contains(r.Types, mode) {
			return
		}
	}
	if r.first = append(r.first, name); len(r.first) == 2*(r.Limit+1) {
		r.cut()
	}
}

// cut leaves the first names, one more than the page takes.
func (r *PageRequest) cut() {
	slices.Sort(r.first)
	if r.first = slices.Compact(r.first); len(r.first) > r.Limit {
		r.first = r.first[:r.Limit+1]
		r.bound = r.first[r.Limit]
	}
}

// choose takes the page's names. next is empty on the last page.
func (r *PageRequest) choose() (chosen []string, next string) {
	r.cut()
	size := 0
	for i, name := range r.first {
		if size += len(name); i > 0 && (i == r.Limit || size > maxPageBytes) {
			return r.first[:i], r.first[i-1]
		}
	}
	return r.first, ""
}

// ReadAt reads the children at the places from offset on of this server's list, and costs no more than these.
func (r *PageRequest) ReadAt(q *Request, offset int) (p Page) {
	r.first = []string{}
	q.View(func(v *server.View) {
		p.Parent, p.Code = v.Tree().VisitChildren(r.Path, offset, offset+r.Limit, r.IDs, func(name string) {
			r.first = append(r.first, name)
		})
		p.Names = r.first
		r.fill(&p, v.Tree())
	})
	return p
}

// fill reads the requested parts of the children of the page.
func (r *PageRequest) fill(p *Page, tree *znode.Tree) {
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

// What the operations share that create znodes with those above them.
const (
	// MaxParents bounds how many levels are made.
	MaxParents = 100
	// MaxTries is how often a change of several znodes is tried when others
	// change them meanwhile.
	MaxTries = 16
)

// CreateFailure names the znode that a failed create is about: it is the parent that must
// exist and permit it.
func CreateFailure(code znode.Error, path string) error {
	switch code {
	case znode.ErrNoNode, znode.ErrNoAuth, znode.ErrNoChildrenForEphemeral:
		path = znode.Parent(path)
	}
	return Failure{code, path}
}

// Missing returns how many of these do not exist here, from the last one upwards.
func Missing(q *Request, above []string) (n int) {
	q.View(func(v *server.View) {
		for n < len(above) {
			if _, code := v.Tree().Exists(above[len(above)-1-n], q.IDs); code != znode.ErrNoNode {
				return
			}
			n++
		}
	})
	return n
}

// Ancestors are the paths above a path, from the top, without the root.
func Ancestors(path string) (above []string) {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			above = append(above, strings.Clone(path[:i]))
		}
	}
	return above
}

// Deleted answers with the outcome of a delete.
func Deleted(q *Request, code znode.Error, path string) error {
	switch code {
	case znode.OK:
	case znode.ErrNoAuth:
		return Failure{code, znode.Parent(path)} // whose permission it takes
	default:
		return Failure{code, path}
	}
	q.Begin(http.StatusNoContent)
	return nil
}
