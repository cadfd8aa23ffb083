package changes

import (
	"strings"

	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// Kind is which changes of a znode a Stream reports. The first three are what
// ZooKeeper's one-shot watches wait for, the others its persistent ones.
type Kind uint8

// The kinds.
const (
	KindData       Kind = iota // data changed, deleted
	KindExists                 // created, data changed, deleted
	KindChildren               // children came or went, deleted
	KindPersistent             // all of these
	KindRecursive              // created, data changed, deleted; also of all znodes below
)

// Filter is what a Stream reports, and for which identities: a change that the identities
// may not READ is left out.
type Filter struct {
	Path       string
	Kind       Kind
	Identities []znode.ID
}

// match returns the change that an edit is to the filter, if it is one.
func (f *Filter) match(e *znode.Event) (znode.EventType, string, bool) {
	own := e.Path == f.Path
	child := e.Type != znode.EventDataChanged && !own && znode.Parent(e.Path) == f.Path
	switch f.Kind {
	case KindData:
		own = own && e.Type != znode.EventCreated
		child = false
	case KindExists:
		child = false
	case KindChildren:
		own = own && e.Type == znode.EventDeleted
	case KindRecursive:
		child = false
		own = own || f.Path == "/" || strings.HasPrefix(e.Path, f.Path) && e.Path[len(f.Path)] == '/'
	}
	switch {
	case own:
		return e.Type, e.Path, znode.Permits(e.ACL, znode.PermRead, f.Identities)
	case child:
		permitted := znode.Permits(e.ParentACL, znode.PermRead, f.Identities)
		return znode.EventChildrenChanged, f.Path, permitted
	}
	return 0, "", false
}

// mode is that of a watch that fires whenever match may return true.
func (f *Filter) mode() watch.Mode {
	if f.Kind == KindRecursive {
		return watch.Recursive
	}
	return watch.Persistent
}
