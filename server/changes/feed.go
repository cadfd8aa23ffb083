// Package changes is a server's record of the newest changes of the tree, and the
// streams that report from it to clients of the HTTP API.
//
// A stream keeps no queue of its own: it reads the record, from the position where
// it is. So a client that resumes on another server, and one that reads slowly, cost
// nothing.
//
// The package does not make the changes: package server adds each with the view lock
// held alone. It starts no goroutine. A Feed is safe for concurrent use; a Stream
// belongs to one goroutine, which takes the view lock shared to read the record.
// Feed.mu, which protects the set of streams, may be taken under the view lock, and
// nothing is locked under it.
package changes

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// The errors of Subscribe and Stream.Next.
var (
	// ErrTooOld means that changes have been discarded that the stream would have
	// to report: read the znodes again and subscribe from then on.
	ErrTooOld = errors.New("some changes after this position have been discarded; read the znodes again")
	// ErrStopping means that this server stops.
	ErrStopping = errors.New("the server is stopping")
)

// Feed is the record of recent changes, and the streams that report from it.
type Feed struct {
	view    View
	stop    <-chan struct{}
	watches *watch.Manager // wake the streams
	record  record         // protected by the view lock

	mu      sync.Mutex // protects the field below
	streams map[*Stream]struct{}
}

// View calls visit while the state does not change, and passes the zxid of the last
// transaction applied. It is how a Stream takes the view lock.
type View func(visit func(zxid znode.Zxid))

// NewFeed returns a Feed without changes. Its streams end when stop is closed.
func NewFeed(view View, stop <-chan struct{}) *Feed {
	return &Feed{view: view, stop: stop, watches: watch.New(), streams: map[*Stream]struct{}{}}
}

// Add records a change, and wakes the streams that it concerns. The caller holds
// the view lock alone. A change before the last one is of another history, as when a mirror is loaded whose zxids are
// lower than this ensemble's: what was recorded is discarded.
func (f *Feed) Add(e *znode.Event) {
	if e.Zxid < f.record.newest {
		f.Restart(e.Zxid - 1)
	}
	f.record.add(e)
	f.watches.Trigger(*e)
}

// Restart discards all changes, because the state was replaced by one of that
// zxid. The streams end. The caller holds the view lock alone.
func (f *Feed) Restart(zxid znode.Zxid) {
	f.record.clear(zxid)
	f.mu.Lock()
	defer f.mu.Unlock()
	for st := range f.streams {
		st.signal()
	}
}

// Subscribe starts a stream of the changes after a position that any of the filters
// matches. What several of them match is reported once. A position that this server has
// not reached yet is waited for. A Position of the stream is one for the same filters.
// The error is ErrTooOld, or reports that there are too many streams. Close the stream.
func (f *Feed) Subscribe(filters []Filter, after Position) (*Stream, error) {
	st := &Stream{feed: f, filters: filters, after: after, wake: make(chan struct{}, 1)}
	st.watcher = f.watches.NewWatcher(st)
	f.mu.Lock()
	f.streams[st] = struct{}{}
	f.mu.Unlock()
	st.seen = after.Zxid
	if after.Part > 0 {
		st.seen-- // its other changes are still to be reported
	}
	var err error
	for i := range filters {
		if err = f.watches.Add(st.watcher, filters[i].Path, filters[i].mode()); err != nil {
			break
		}
	}
	f.view(func(znode.Zxid) {
		st.restart = f.record.restart
		if err == nil && st.seen < f.record.floor {
			err = fmt.Errorf("%w: this server has the changes after %v, the request asked for those after %v",
				ErrTooOld, f.record.floor, after.Zxid)
		}
		st.todo, st.first = true, f.record.seek(st.seen)
	})
	if err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// capacity is how many changes a server remembers for streams that resume: some
// seconds of the heaviest load, hours of a usual one, and a few megabytes. maxBytes
// bounds their paths and ACLs, which clients choose: fewer are remembered then.
const (
	capacity = 1 << 16
	maxBytes = 32 << 20
)

// record holds the newest changes of the tree, numbered from 0.
type record struct {
	ring    []entry    // grows up to capacity; number n is at n % capacity
	total   uint64     // how many there were
	first   uint64     // number of the oldest
	bytes   int64      // of paths and permissions; one that several in a row share counts once
	floor   znode.Zxid // every change after it is in the ring
	newest  znode.Zxid // of the newest change, or floor
	restart uint64     // counts how often the record was cleared
}

// entry is a znode.Event in half its bytes: there are many, and most have the same
// lists as the one before.
type entry struct {
	path string
	zxid znode.Zxid
	may  *permissions
	typ  znode.EventType
}

// permissions are an event's lists.
type permissions struct{ own, parent []znode.ACL }

// add puts the newest change in, perhaps in place of the oldest.
func (r *record) add(e *znode.Event) {
	kept := entry{
		path: strings.Clone(e.Path), // it lies in a log entry, or in a znode
		zxid: e.Zxid, may: r.permissions(e), typ: e.Type,
	}
	r.bytes += int64(len(kept.path))
	if r.total == r.first || kept.may != r.ring[(r.total-1)%capacity].may {
		r.bytes += kept.may.bytes()
	}
	if r.total-r.first == capacity {
		r.drop()
	}
	if len(r.ring) < capacity {
		if len(r.ring) == cap(r.ring) {
			longer := make([]entry, len(r.ring), min(max(64, 2*len(r.ring)), capacity))
			copy(longer, r.ring)
			r.ring = longer
		}
		r.ring = append(r.ring, kept)
	} else {
		r.ring[r.total%capacity] = kept
	}
	r.total++
	r.newest = e.Zxid
	for r.bytes > maxBytes && r.total-r.first > 1 {
		r.drop()
	}
}

// drop forgets the oldest change, which is not the newest.
func (r *record) drop() {
	slot := &r.ring[r.first%capacity]
	r.floor = slot.zxid
	r.bytes -= int64(len(slot.path))
	if slot.may != r.ring[(r.first+1)%capacity].may {
		r.bytes -= slot.may.bytes()
	}
	*slot = entry{}
	r.first++
}

func (p *permissions) bytes() int64 { return znode.ACLMemory(p.own) + znode.ACLMemory(p.parent) }

// permissions returns those of the change before, if e has the same.
func (r *record) permissions(e *znode.Event) *permissions {
	if r.total > r.first {
		p := r.ring[(r.total-1)%capacity].may
		if sameList(p.own, e.ACL) && sameList(p.parent, e.ParentACL) {
			return p
		}
	}
	return &permissions{e.ACL, e.ParentACL}
}

// sameList reports whether two lists are one in memory, as those of the tree are
// that say the same.
func sameList(a, b []znode.ACL) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// clear forgets everything: the state has been replaced by one of that zxid.
func (r *record) clear(zxid znode.Zxid) {
	*r = record{floor: zxid, newest: zxid, restart: r.restart + 1}
}

// oldest is the number of the oldest change in the record.
func (r *record) oldest() uint64 { return r.first }

func (r *record) zxid(n uint64) znode.Zxid { return r.ring[n%capacity].zxid }

func (r *record) at(n uint64) znode.Event {
	k := &r.ring[n%capacity]
	return znode.Event{Type: k.typ, Path: k.path, Zxid: k.zxid, ACL: k.may.own, ParentACL: k.may.parent}
}

// seek returns the number of the first change after a zxid.
func (r *record) seek(zxid znode.Zxid) uint64 {
	return r.oldest() + uint64(sort.Search(int(r.total-r.first), func(i int) bool {
		return r.zxid(r.oldest()+uint64(i)) > zxid
	}))
}
