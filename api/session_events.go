package api

import (
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/server/changes"
)

const (
	// maxWatches bounds the paths of one session's stream.
	maxWatches = 1000
	// beatsPerTimeout is how often a stream keeps its session alive within the
	// timeout: one beat may be lost.
	beatsPerTimeout = 3
)

// sessionEvents is a stream that keeps its session alive while it is open, and
// reports the changes that ?watch=kind:/path asks for.
func (q *request) sessionEvents() error {
	if err := q.ownSession(); err != nil {
		return err
	}
	watches := q.query.values["watch"]
	if len(watches) > maxWatches {
		return badRequest("watch", "%d of them; one stream has %d at most", len(watches), maxWatches)
	}
	filters := make([]changes.Filter, 0, len(watches))
	for _, text := range watches {
		name, path, ok := strings.Cut(text, ":")
		if !ok {
			return badRequest("watch", "%q is not kind:/path, such as children:/app", text)
		}
		kind, err := parseKind("watch", name)
		if err != nil {
			return err
		}
		if err := checkPath("watch", path); err != nil {
			return err
		}
		filters = append(filters, changes.Filter{Path: path, Kind: kind, Identities: q.ids})
	}
	from, err := q.since()
	if err != nil {
		return err
	}
	ended, cancel := q.door.srv.SessionEnd(q.session)
	defer cancel()
	every := max(q.timeout/beatsPerTimeout, time.Millisecond)
	return q.stream(filters, from, &keeper{id: q.session, every: every, ended: ended})
}
