package admin

import (
	"slices"
	"strconv"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// The commands about watches and sessions. Session ids are Java longs there.

// maxListed bounds how many watches or ephemerals a command lists: a million are a
// hundred megabytes of text.
const maxListed = 1 << 20

// hiding returns which paths an answer must not name, and refuses who may not be shown what others do.
func hiding(q *rest.Request) (hidden func(path string) bool, err error) {
	all, err := q.NeedInsight()
	return func(path string) bool { return !all && !tellable(q, path) }, err
}

// tellable reports whether who asks may be told of a path.
func tellable(q *rest.Request, path string) (yes bool) {
	q.Core.Server.View(func(v *server.View) { yes = v.Tree().Tellable(path, q.IDs) })
	return yes
}

// commandDump lists the sessions' ephemeral znodes and, on the leader, when they would
// expire.
func (h *handlers) commandDump(q *rest.Request, out object) error {
	hidden, err := hiding(q)
	if err != nil {
		return err
	}
	expiry := map[string][]znode.SessionID{}
	for at, ids := range h.server.SessionDeadlines() {
		expiry[strconv.FormatInt(at, 10)] = ids
	}
	out["expiry_time_to_session_ids"] = expiry
	var owners []znode.SessionID
	q.View(func(v *server.View) {
		n := 0
		v.Tree().EphemeralOwners(func(id znode.SessionID, count int) {
			if n += count; n <= maxListed {
				owners = append(owners, id)
			}
		})
	})
	list := map[string][]string{}
	for _, id := range owners { // one at a time: others wait meanwhile
		var paths []string
		q.View(func(v *server.View) { paths = v.Tree().Ephemerals(id, "") })
		list[sessionText(id)] = slices.DeleteFunc(paths, hidden)
	}
	out["session_id_to_ephemeral_paths"] = list
	return nil
}

// commandWatchSummary counts the watches of this server's connections.
func commandWatchSummary(q *rest.Request, out object) error {
	s := watches(q).Summary()
	out["num_connections"], out["num_paths"] = s.Connections, s.Paths
	out["num_total_watches"] = s.Watches
	return nil
}

// commandWatches lists them by session.
func commandWatches(q *rest.Request, out object) error {
	hidden, err := hiding(q)
	if err != nil {
		return err
	}
	list := map[string][]string{}
	rows, _ := watches(q).ByWatcher(maxListed)
	for _, row := range rows {
		id := sessionText(server.WatcherSession(row.Watcher))
		list[id] = append(list[id], slices.DeleteFunc(row.Paths, hidden)...)
	}
	out["session_id_to_watched_paths"] = list
	return nil
}

// commandWatchesByPath lists them by path.
func commandWatchesByPath(q *rest.Request, out object) error {
	hidden, err := hiding(q)
	if err != nil {
		return err
	}
	list := map[string][]znode.SessionID{}
	rows, _ := watches(q).ByPath(maxListed)
	for _, row := range rows {
		if hidden(row.Path) {
			continue
		}
		for _, w := range row.Watchers {
			list[row.Path] = append(list[row.Path], server.WatcherSession(w))
		}
	}
	out["path_to_session_ids"] = list
	return nil
}

func watches(q *rest.Request) (m *watch.Manager) {
	q.View(func(v *server.View) { m = v.Watches() })
	return m
}

func sessionText(id znode.SessionID) string { return strconv.FormatInt(int64(id), 10) }
