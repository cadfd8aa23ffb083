package data

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	maxFound   = 1000      // znodes in one answer
	maxVisited = 100_000   // znodes that one request looks at, about
	maxNames   = 20        // parts of names
	maxScanned = 256 << 20 // bytes of data that it looks through, about
)

// searchBody is a page of the znodes that were found.
type searchBody struct {
	Found   []znodeBody `json:"found"`   // without data
	Visited int         `json:"visited"` // znodes that were looked at for this page
	Next    string      `json:"next,omitempty"`
}

// finder looks for znodes, a part of the tree at a time: all other requests wait meanwhile.
type finder struct {
	top   string
	names []string // one of them is in the name; none: any name
	data  []byte
	any   string // in the name or the data
	owner znode.SessionID
	owned bool // by any session
	limit int
	ids   []znode.ID

	seed             uint32
	part             int    // the next to be looked at
	after            string // in this part, only znodes after this path
	visited, scanned int
	found            []znodeBody
}

// search finds znodes by what their names and data contain, and by their owner.
func search(q *rest.Request) error {
	f := finder{
		names: q.Query.Values["name"], data: []byte(q.Query.Text("data")), any: q.Query.Text("any"), ids: q.IDs,
		found: []znodeBody{},
	}
	if len(f.names) > maxNames {
		return rest.BadRequest("name", "given %d times; give it %d times at most", len(f.names), maxNames)
	}
	var err error
	if f.top, err = q.ZnodePath(); err != nil {
		return err
	}
	if f.limit, err = q.Query.Integer("limit", maxFound/10, 1, maxFound); err != nil {
		return err
	}
	f.owned = q.Query.Text("owner") == "any"
	if q.Query.Has("owner") && !f.owned {
		var ok bool
		if f.owner, ok = rest.ParseSessionID(q.Query.Text("owner")); !ok {
			return rest.BadRequest("owner", "%q is neither the id of a session, such as 0x1001, nor any",
				q.Query.Text("owner"))
		}
	}
	leave, err := q.EnterSearch()
	if err != nil {
		return err
	}
	defer leave()
	q.View(func(v *server.View) { f.seed = v.Tree().Seed() })
	if err := f.resume(q.Query.Text("after")); err != nil {
		return err
	}
	for begun := time.Now(); !f.full() && q.Context.Err() == nil; {
		same := true
		q.View(func(v *server.View) {
			if same = v.Tree().Seed() == f.seed; same {
				f.visit(v.Tree())
			}
		})
		if !same {
			return treeReplaced()
		}
		begun = rest.Pause(q.Context, begun)
	}
	return q.Answer(http.StatusOK, searchBody{f.found, f.visited, f.next()})
}

func (f *finder) full() bool {
	return f.part == znode.Parts || len(f.found) == f.limit || f.visited >= maxVisited || f.scanned >= maxScanned
}

// next is where the next page begins: the tree, the part and, in the midst of it, the path.
func (f *finder) next() string {
	if f.part == znode.Parts {
		return ""
	}
	return fmt.Sprintf("%x.%d%s", f.seed, f.part, f.after)
}

// resume is the inverse of next.
func (f *finder) resume(text string) error {
	if text == "" {
		return nil
	}
	place, path, within := strings.Cut(text, "/")
	seedText, partText, _ := strings.Cut(place, ".")
	seed, err := strconv.ParseUint(seedText, 16, 32)
	part, err2 := strconv.ParseUint(partText, 10, 16)
	if err != nil || err2 != nil || part >= znode.Parts {
		return rest.BadRequest("after", "%q is not the next of a page before", text)
	}
	if uint32(seed) != f.seed {
		return treeReplaced()
	}
	if f.part = int(part); within {
		f.after = "/" + path
	}
	return nil
}

// treeReplaced is the problem of a search that cannot continue here.
func treeReplaced() error {
	return &rest.Problem{Status: http.StatusGone, Title: "another tree", Param: "after",
		Detail: "after: it is of another server, or this one has got its tree anew since",
		Hint:   "search from the beginning"}
}

// visit looks at the next part.
func (f *finder) visit(tree *znode.Tree) {
	var here []znodeBody
	tree.Visit(f.part, func(path string, data []byte, s *znode.Stat) {
		f.visited++
		if len(f.data) > 0 || f.any != "" {
			f.scanned += len(data)
		}
		if f.matches(path, data, s) && tree.Visible(path, f.ids) {
			here = append(here, znodeBody{Path: path, Stat: rest.StatOf(s)})
		}
	})
	slices.SortFunc(here, func(a, b znodeBody) int { return strings.Compare(a.Path, b.Path) })
	if room := f.limit - len(f.found); len(here) > room {
		f.found = append(f.found, here[:room]...)
		f.after = here[room-1].Path
		return
	}
	f.found = append(f.found, here...)
	f.part, f.after = f.part+1, ""
}

func (f *finder) matches(path string, data []byte, s *znode.Stat) bool {
	below, within := strings.CutPrefix(path, f.top)
	within = within && (f.top == znode.RootPath || below == "" || below[0] == '/')
	return within && path > f.after && (f.owner == 0 || s.EphemeralOwner == f.owner) &&
		(!f.owned || s.EphemeralOwner != 0) && f.named(znode.Base(path)) && bytes.Contains(data, f.data) &&
		(strings.Contains(znode.Base(path), f.any) || bytes.Contains(data, []byte(f.any)))
}

func (f *finder) named(name string) bool {
	contains := func(part string) bool { return strings.Contains(name, part) }
	return len(f.names) == 0 || slices.ContainsFunc(f.names, contains)
}
