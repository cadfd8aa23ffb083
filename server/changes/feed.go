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

// DefaultWindow is the bytes of changes that a server keeps: seconds of the heaviest load, hours of a usual one.
const DefaultWindow = 16 << 20

// NewFeed returns a Feed without changes, which keeps those of the last so many bytes. Its streams end when stop is
// closed.
func NewFeed(view View, stop <-chan struct{}, window int64) *Feed {
	return &Feed{
		view: view, stop: stop, watches: watch.New(), record: record{window: window}, streams: map[*Stream]struct{}{},
	}
}

// Add records a change, and wakes the streams that it concerns. The caller holds
// the view lock alone. A change before the last one is of another history, as when a mirror is loaded whose zxids are
// lower than this ensemble's: what was recorded is discarded.
func (f *Feed) Add(e *znode.Event) {
	if e.Zxid < f.record.newest {
		f.Restart(e.Zxid - 1)
	}
	f.record.add(e)
	f.watches.Trigger(e)
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
