package check

import (
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// Feed is what a client of a change feed got of a path and all below it, at one server after the other: first a
// listing, then the changes after it.
type Feed struct {
	Client int
	Path   string
	Start  map[string]string // the values at Since, by path
	// Since is the zxid of the listing, UpTo that up to which servers said the client has all changes.
	Since, UpTo znode.Zxid
	Got         []Fed
}

// Fed is a change as a feed reports it. The Value of a deletion is the last one.
type Fed struct {
	Change
	Before string // the value that a change of data has replaced
	Server int
}

// Feeds checks what the clients of change feeds got: in the order of the log, each change below the path exactly once,
// with the values of that moment, from the listing's zxid on.
//
// Guarantee: Resuming.
func Feeds(h *History) []Violation {
	var f findings
	for i := range h.Feeds {
		f.feed(h.Changes, &h.Feeds[i])
	}
	return f.list
}

func (f *findings) feed(changes []Change, x *Feed) {
	tree, got, listed := map[string]string{}, x.Got, false
	for _, c := range changes {
		if c.Zxid > x.Since && !listed {
			f.listing(x, tree)
			listed = true
		}
		if c.Zxid > x.UpTo {
			break
		}
		if !under(c.Path, x.Path) {
			continue
		}
		want := Fed{Change: c}
		want.Owner = 0
		switch c.Type {
		case znode.EventDeleted:
			want.Value = tree[c.Path]
			delete(tree, c.Path)
		case znode.EventDataChanged:
			want.Before = tree[c.Path]
			tree[c.Path] = c.Value
		default:
			tree[c.Path] = c.Value
		}
		if c.Zxid <= x.Since {
			continue
		}
		if len(got) == 0 {
			f.add("Resuming", "client %d has all below %s from %v to %v, it was told, but not %+v", x.Client, x.Path,
				x.Since, x.UpTo, want)
			return
		}
		want.Server = got[0].Server
		if got[0] != want {
			f.add("Resuming", "client %d follows %s from %v: got %+v, next is %+v", x.Client, x.Path, x.Since, got[0],
				want)
			return
		}
		got = got[1:]
	}
	if !listed {
		f.listing(x, tree)
	}
	if len(got) > 0 {
		f.add("Resuming", "client %d follows %s from %v: got %+v, which is not in the log up to %v, or came again",
			x.Client, x.Path, x.Since, got[0], x.UpTo)
	}
}

// listing compares the listing with the tree at its zxid, but for what every tree has from its beginning.
func (f *findings) listing(x *Feed, tree map[string]string) {
	for path, value := range x.Start {
		if path == znode.RootPath || under(path, znode.SystemPath) {
			tree[path] = value
		}
	}
	for path, value := range tree {
		if have, ok := x.Start[path]; !ok || have != value {
			f.add("Resuming", "client %d lists %s at %v: got %q (%t) for %s, want %q", x.Client, x.Path, x.Since,
				have, ok, path, value)
		}
	}
	for path := range x.Start {
		if _, ok := tree[path]; !ok {
			f.add("Resuming", "client %d lists %s at %v: got %s, which is not there", x.Client, x.Path, x.Since, path)
		}
	}
}

// under reports whether a path is top or below it.
func under(path, top string) bool {
	return top == znode.RootPath || path == top || strings.HasPrefix(path, top+"/")
}
