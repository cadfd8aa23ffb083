package changes

import (
	"context"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// Position is a place in the order of changes from which a Stream can continue, on
// any server. The zero Position is before the first change.
type Position struct {
	Zxid znode.Zxid
	// Part is how many of the transaction's changes, of those that the stream
	// reports, have been seen; 0 means all. Only a multi or the end of a session
	// has several.
	Part int
}

// Change is a change that a Stream reports.
type Change struct {
	Type znode.EventType
	Path string
	At   Position // a Stream from here does not report this change again
	// Edit is the edit of the tree; that of a child if Type is EventChildrenChanged. It has no Txn.
	Edit       znode.Event
	By         *Author // of the transaction; never changed
	TimeMillis int64   // of the transaction, by its leader's clock, milliseconds since the epoch
	Purged     bool    // its values were removed: there are no data
}

// NextTransaction divides changes, which are whole transactions in their order, into those of the first and the others.
func NextTransaction(all []Change) (first, others []Change) {
	n := slices.IndexFunc(all, func(c Change) bool { return c.At.Zxid != all[0].At.Zxid })
	if n < 0 {
		n = len(all)
	}
	return all[:n], all[n:]
}

// How much a stream does at a time, under the lock that appliers need too, and what it hands over, in bytes of data, so
// that the slowest reader holds little. A transaction may exceed the bounds, never two.
const (
	scanAtATime   = 4096
	reportAtATime = 256
	bytesAtATime  = 1 << 20
)

// Stream reports changes in their order, each once, from a Position on. It keeps
// no queue: it reads the server's record of recent changes, so a slow reader
// costs nothing, until it is so late that it gets ErrTooOld. A quiet one is never
// late. A Stream belongs to one goroutine.
type Stream struct {
	feed    *Feed
	filters []Filter
	watcher *watch.Watcher
	wake    chan struct{} // capacity 1

	seen  znode.Zxid // all changes up to it have been read
	after Position   // nothing up to it is reported
	last  Position   // of the last match

	// Protected by the view lock: written while an entry is applied or, with
	// readers let in, by the stream's goroutine.
	restart uint64 // record.restart at the start
	todo    bool   // there are changes to read,
	first   uint64 // from this number on
}

// Notify implements watch.Sink: the newest change of the record is for the stream.
func (st *Stream) Notify(*watch.Notification) {
	if !st.todo {
		st.todo, st.first = true, st.feed.record.total-1
	}
	st.signal()
}

func (st *Stream) signal() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// Read returns the first changes after a transaction that the filter matches, whole transactions, and the one up to
// which it has read; more reports that there is more to read at once. The caller holds the view lock, shared; now is
// the state's zxid. The error is ErrTooOld.
func (f *Feed) Read(filter Filter, after, now znode.Zxid) (found []Change, upTo znode.Zxid, more bool, err error) {
	r := &f.record
	if after < r.floor {
		return nil, now, false, ErrTooOld
	}
	st := Stream{filters: []Filter{filter}, seen: after, after: Position{Zxid: after}, first: r.seek(after)}
	found = st.scan(r)
	if st.first < r.total {
		return found, st.seen, true, nil
	}
	return found, max(st.seen, now), false, nil
}

// Close frees what the stream holds.
func (st *Stream) Close() {
	st.feed.watches.Drop(st.watcher)
	st.feed.mu.Lock()
	delete(st.feed.streams, st)
	st.feed.mu.Unlock()
}

// Zxid is how far the stream has read: all changes up to it.
func (st *Stream) Zxid() znode.Zxid { return st.seen }

// Next returns the next changes, at least one. When ctx ends before there is one,
// the error is ctx's, and Zxid returns how far the stream has read all the same.
//
// Errors: ErrTooOld, ErrStopping.
func (st *Stream) Next(ctx context.Context) ([]Change, error) {
	for {
		ended := ctx.Err()
		changes, more, err := st.read()
		switch {
		case err != nil || len(changes) > 0:
			return changes, err
		case more:
			continue
		case ended != nil:
			return nil, ended
		}
		select {
		case <-st.wake:
		case <-ctx.Done():
		case <-st.feed.stop:
			return nil, ErrStopping
		}
	}
}

// read returns what the record has from where the stream is, and reports whether
// there is more. It stops between transactions only.
func (st *Stream) read() (found []Change, more bool, err error) {
	st.feed.view(func(zxid znode.Zxid) {
		r := &st.feed.record
		switch {
		case st.restart != r.restart || st.todo && st.first < r.oldest():
			err = fmt.Errorf("%w: they came faster than the stream was read", ErrTooOld)
			return
		case !st.todo:
			st.seen = max(st.seen, zxid)
			return
		}
		found = st.scan(r)
		if more = st.first < r.total; !more {
			st.seen = max(st.seen, zxid)
		}
		st.todo = more
	})
	return found, more, err
}

// scan reads the record from st.first on, and stops, between transactions, when that is enough for once.
func (st *Stream) scan(r *record) (found []Change) {
	bytes := 0
	for begin := st.first; st.first < r.total; st.first++ {
		e := r.event(st.first)
		enough := st.first-begin >= scanAtATime || len(found) >= reportAtATime || bytes >= bytesAtATime
		if e.Zxid != st.seen && enough {
			return found
		}
		st.seen = max(st.seen, e.Zxid)
		had := len(found)
		found = st.match(found, &e)
		for i := range found[had:] {
			k := r.entry(st.first)
			found[had+i].By, found[had+i].TimeMillis, found[had+i].Purged = k.by, k.timeMillis, k.purged
			bytes += len(e.Data) + len(e.Before)
		}
	}
	return found
}

// match adds to found what an edit means to the filters, each type and path once: first the
// change of the znode itself, then that of its parent's children.
func (st *Stream) match(found []Change, e *znode.Event) []Change {
	var own, children *Change
	for i := range st.filters {
		typ, path, ok := st.filters[i].match(e)
		switch {
		case !ok:
		case typ == znode.EventChildrenChanged:
			children = &Change{Type: typ, Path: path, Edit: *e}
		default:
			own = &Change{Type: typ, Path: path, Edit: *e}
		}
	}
	if own != nil {
		found = st.report(found, e.Zxid, *own)
	}
	if children != nil {
		found = st.report(found, e.Zxid, *children)
	}
	return found
}

// report adds a match to found, unless the client has had it. The last change of
// a transaction gets the position after the whole transaction.
func (st *Stream) report(found []Change, zxid znode.Zxid, c Change) []Change {
	if zxid != st.last.Zxid {
		st.last = Position{Zxid: zxid}
	}
	st.last.Part++
	seen := st.after
	if zxid < seen.Zxid || zxid == seen.Zxid && (seen.Part == 0 || st.last.Part <= seen.Part) {
		return found
	}
	if n := len(found); n > 0 && found[n-1].At.Zxid == zxid {
		found[n-1].At.Part = st.last.Part - 1
	}
	c.At = Position{Zxid: zxid}
	return append(found, c)
}

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
	// Types and Modes, unless empty, are those of the edits that it reports. EventChildrenChanged stands for the
	// creation and deletion of Path's children.
	Types []znode.EventType
	Modes []znode.Mode
}

// match returns the change that an edit is to the filter, if it is one.
func (f *Filter) match(e *znode.Event) (znode.EventType, string, bool) {
	if len(f.Types) > 0 && !f.hasType(e) || len(f.Modes) > 0 && !slices.Contains(f.Modes, e.Mode) {
		return 0, "", false
	}
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
		own = within(e.Path, f.Path)
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

// within reports whether a path is top or below it.
func within(path, top string) bool {
	below := len(path) > len(top) && path[len(top)] == '/' && path[:len(top)] == top
	return below || path == top || top == znode.RootPath
}

// hasType reports whether Types have an edit.
func (f *Filter) hasType(e *znode.Event) bool {
	return slices.Contains(f.Types, e.Type) || slices.Contains(f.Types, znode.EventChildrenChanged) &&
		e.Type != znode.EventDataChanged && e.Path != f.Path && znode.Parent(e.Path) == f.Path
}

// mode is that of a watch that fires whenever match may return true.
func (f *Filter) mode() watch.Mode {
	if f.Kind == KindRecursive {
		return watch.Recursive
	}
	return watch.Persistent
}
