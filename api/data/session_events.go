package data

import (
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server/changes"
)

const (
	// maxWatches bounds the paths of one session's stream.
	maxWatches = 1000
)

// sessionEvents is a stream that keeps its session alive while it is open, and
// reports the changes that ?watch=kind:/path asks for.
func (h *handlers) sessionEvents(q *rest.Request) error {
	if err := ownSession(q); err != nil {
		return err
	}
	watches := q.Query.Values["watch"]
	if len(watches) > maxWatches {
		return rest.BadRequest("watch", "%d of them; one stream has %d at most", len(watches), maxWatches)
	}
	filters := make([]changes.Filter, 0, len(watches))
	for _, text := range watches {
		name, path, ok := strings.Cut(text, ":")
		if !ok {
			return rest.BadRequest("watch", "%q is not kind:/path, such as children:/app", text)
		}
		kind, err := parseKind("watch", name)
		if err != nil {
			return err
		}
		if err := rest.CheckPath("watch", path); err != nil {
			return err
		}
		filters = append(filters, changes.Filter{Path: path, Kind: kind, Identities: q.IDs})
	}
	from, err := since(q)
	if err != nil {
		return err
	}
	ended, cancel := h.server.SessionEnd(q.Session)
	defer cancel()
	every := max(q.Timeout/rest.TouchesPerTimeout, time.Millisecond)
	return h.stream(q, filters, from, &keeper{id: q.Session, every: every, ended: ended})
}
