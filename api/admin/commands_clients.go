package admin

import (
	"slices"
	"strconv"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// Port is what the commands report of the server's ZooKeeper port, and do to it.
type Port interface {
	Totals() metrics.Totals
	Connections() []metrics.Connection // the oldest first
	ResetTotals()
	ResetConnections()
	TraceMask() int64
	SetTraceMask(mask int64)
	DirSizes() (data, log int64) // bytes
	Metrics(emit func(name string, value any))
}

// connectionInfo is a connection as ServerCnxn.getConnectionInfo has it. The last zxid is -1
// before the first answer, as there.
func connectionInfo(c *metrics.Connection, brief bool) object {
	// What ZooKeeper waits for on the socket: 1 is reading, which never ends here.
	const reading = 1
	out := object{
		"remote_socket_address": c.Remote, "interest_ops": reading,
		"outstanding_requests": c.Outstanding,
		"packets_received":     c.PacketsReceived, "packets_sent": c.PacketsSent,
	}
	if brief {
		return out
	}
	answered, zxid := int64(0), int64(-1)
	if !c.LastAnswer.IsZero() {
		answered, zxid = c.LastAnswer.UnixMilli(), int64(c.LastZxid)
	}
	out["session_id"], out["session_timeout"] = int64(c.Session), c.Timeout.Milliseconds()
	out["established"], out["last_operation"] = c.Established.UnixMilli(), c.LastOp
	out["last_cxid"], out["last_zxid"] = c.LastXid, zxid
	out["last_response_time"], out["last_latency"] = answered, c.LastLatency.Milliseconds()
	out["min_latency"], out["max_latency"] = c.MinLatency.Milliseconds(), c.MaxLatency.Milliseconds()
	out["avg_latency"] = int64(c.AvgLatencyMillis) // whole milliseconds, as there
	return out
}

// needPort returns the ZooKeeper port, or answers that there is none.
func (h *commands) needPort(q *rest.Request, out object) (Port, bool) {
	if h.cfg.Port == nil {
		out["error"] = "this server has no ZooKeeper port"
		return nil, false
	}
	return h.cfg.Port, true
}

// connectionList is the list of connections, and the one of those over TLS, which there
// are none of.
func (h *commands) connectionList(q *rest.Request, out object, brief bool) {
	list := []object{}
	if p := h.cfg.Port; p != nil {
		for _, c := range p.Connections() {
			list = append(list, connectionInfo(&c, brief))
		}
	}
	out["connections"], out["secure_connections"] = list, []object{}
}

// connections lists the ZooKeeper port's connections.
func (h *commands) connections(q *rest.Request, out object) error {
	if _, err := q.NeedInsight(); err != nil {
		return err
	}
	h.connectionList(q, out, false)
	return nil
}

// stats is server_stats with the connections.
func (h *commands) stats(q *rest.Request, out object) error {
	if _, err := q.NeedInsight(); err != nil {
		return err
	}
	if err := h.serverStats(q, out); err != nil {
		return err
	}
	h.connectionList(q, out, true)
	return nil
}

// connectionReset resets the connections' metrics. What changes something
// is for operators: a GET is sent too easily.
func (h *commands) connectionReset(q *rest.Request, out object) error {
	if err := q.NeedAdministrator(); err != nil {
		return err
	}
	if p, ok := h.needPort(q, out); ok {
		p.ResetConnections()
	}
	return nil
}

// statReset resets the server's metrics.
func (h *commands) statReset(q *rest.Request, out object) error {
	if err := q.NeedAdministrator(); err != nil {
		return err
	}
	if p, ok := h.needPort(q, out); ok {
		p.ResetTotals()
	}
	return nil
}

// shedding is the command that disconnects a share of this server's clients (ZooKeeper 3.10).
func shedding(cfg *Config) func(*rest.Request) error {
	return func(q *rest.Request) error {
		return runCommand(q, cfg.ReadOnly, []command{{[]string{"shed_connections", "shed"}, false,
			func(q *rest.Request, out object) error { return shed(q, out, cfg.Shed) }}})
	}
}

func shed(q *rest.Request, out object, clients func(percent int) int) error {
	var body struct {
		Percentage *int `json:"percentage"`
	}
	if err := q.Decode(1<<10, &body); err != nil {
		return err
	}
	switch p := body.Percentage; {
	case p == nil:
		return rest.BadRequest("percentage", `it is missing; send {"percentage": 20} to disconnect a fifth`)
	case *p < 0 || *p > 100:
		return rest.BadRequest("percentage", "%d is not between 0 and 100", *p)
	case clients == nil:
		out["error"] = "this server has no ZooKeeper port"
	default:
		out["connections_shed"], out["percentage_requested"] = clients(*p), *p
	}
	return nil
}

// dirs reports how large the data directories are.
func (h *commands) dirs(q *rest.Request, out object) error {
	if p, ok := h.needPort(q, out); ok {
		out["datadir_size"], out["logdir_size"] = p.DirSizes()
	}
	return nil
}

// traceMask shows the trace mask, which is kept and has no effect.
func (h *commands) traceMask(q *rest.Request, out object) error {
	if p, ok := h.needPort(q, out); ok {
		out["tracemask"] = p.TraceMask()
	}
	return nil
}

// setTraceMask sets it.
func (h *commands) setTraceMask(q *rest.Request, out object) error {
	if err := q.NeedAdministrator(); err != nil {
		return err
	}
	p, ok := h.needPort(q, out)
	if !ok {
		return nil
	}
	text := q.Query.Text("traceMask")
	mask, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		out["error"] = "setTraceMask requires long traceMask argument"
	case err != nil:
		out["error"] = "setTraceMask requires long traceMask argument, got " + text
	default:
		p.SetTraceMask(mask)
		out["tracemask"] = mask
	}
	return nil
}

// observers lists the observers that are connected. Unlike in ZooKeeper, only the
// leader knows of any.
func (h *commands) observers(q *rest.Request, out object) error {
	list := []object{}
	if q.Core.Server.Status().Role == consensus.RoleLeader {
		ensemble, err := h.ensemble.Status(q.Context)
		if err != nil {
			return clusterProblem(err)
		}
		members := h.ensemble.Members()
		for i := range ensemble.Members {
			m := &ensemble.Members[i]
			if m.Connected && !m.Voter {
				list = append(list, object{
					"sid": m.ID, "remote_socket_address": members[m.ID].Peer,
					"last_index": m.LastIndex, "applied_index": m.AppliedIndex,
				})
			}
		}
	}
	out["synced_observers"], out["observers"] = len(list), list
	return nil
}

// The commands about watches and sessions. Session ids are Java longs there.

// maxListed bounds how many watches or ephemerals a command lists: a million are a
// hundred megabytes of text.
const maxListed = 1 << 20

// hiding returns which paths an answer must not name, and refuses clients that may not see others.
func hiding(q *rest.Request) (hidden func(path string) bool, err error) {
	all, err := q.NeedInsight()
	return func(path string) bool { return !all && !tellable(q, path) }, err
}

// tellable reports whether the client may know of a path.
func tellable(q *rest.Request, path string) (yes bool) {
	q.Core.Server.View(func(v *server.View) { yes = v.Tree().Tellable(path, q.IDs) })
	return yes
}

// dump lists the sessions' ephemeral znodes and, on the leader, when they would
// expire.
func (h *commands) dump(q *rest.Request, out object) error {
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
