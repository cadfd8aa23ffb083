package api

import (
	"strconv"

	"github.com/zk-lite/zk-lite/api/figures"
	"github.com/zk-lite/zk-lite/server"
)

// Port is what the commands tell of the server's ZooKeeper port, and do to it.
type Port interface {
	Totals() figures.Totals
	Connections() []figures.Connection // the oldest first
	ResetTotals()
	ResetConnections()
	TraceMask() int64
	SetTraceMask(mask int64)
	DirSizes() (data, log int64) // bytes
	Emit(emit func(name string, value any))
}

// connectionInfo is a connection as ServerCnxn.getConnectionInfo has it. The last zxid is -1
// before the first answer, as there.
func connectionInfo(c *figures.Connection, brief bool) object {
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

// needPort says that a command is about the ZooKeeper port, and there is none.
func (q *request) needPort(out object) (Port, bool) {
	if q.door.cfg.Port == nil {
		out["error"] = "this server has no ZooKeeper port"
		return nil, false
	}
	return q.door.cfg.Port, true
}

// connectionList is the list of connections, and the one of those over TLS, which there
// are none of.
func (q *request) connectionList(out object, brief bool) {
	list := []object{}
	if p := q.door.cfg.Port; p != nil {
		for _, c := range p.Connections() {
			list = append(list, connectionInfo(&c, brief))
		}
	}
	out["connections"], out["secure_connections"] = list, []object{}
}

// commandConnections lists the ZooKeeper port's connections.
func (q *request) commandConnections(out object) error {
	q.connectionList(out, false)
	return nil
}

// commandStats is server_stats with the connections.
func (q *request) commandStats(out object) error {
	if err := q.commandServerStats(out); err != nil {
		return err
	}
	q.connectionList(out, true)
	return nil
}

// commandConnectionReset starts the connections' figures afresh. What changes something
// is for operators: a GET is sent too easily.
func (q *request) commandConnectionReset(out object) error {
	if err := q.needOperator(); err != nil {
		return err
	}
	if p, ok := q.needPort(out); ok {
		p.ResetConnections()
	}
	return nil
}

// commandStatReset starts the server's figures afresh.
func (q *request) commandStatReset(out object) error {
	if err := q.needOperator(); err != nil {
		return err
	}
	if p, ok := q.needPort(out); ok {
		p.ResetTotals()
	}
	return nil
}

// commandDirs tells how large the data directories are.
func (q *request) commandDirs(out object) error {
	if p, ok := q.needPort(out); ok {
		out["datadir_size"], out["logdir_size"] = p.DirSizes()
	}
	return nil
}

// commandTraceMask shows the trace mask, which is kept and has no effect.
func (q *request) commandTraceMask(out object) error {
	if p, ok := q.needPort(out); ok {
		out["tracemask"] = p.TraceMask()
	}
	return nil
}

// commandSetTraceMask sets it.
func (q *request) commandSetTraceMask(out object) error {
	if err := q.needOperator(); err != nil {
		return err
	}
	p, ok := q.needPort(out)
	if !ok {
		return nil
	}
	text := q.query.text("traceMask")
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

// commandObservers lists the observers that are connected. Other than in ZooKeeper, who
// does not lead knows of none.
func (q *request) commandObservers(out object) error {
	list := []object{}
	if q.door.srv.Status().Role == server.RoleLeader {
		survey, err := q.door.srv.EnsembleStatus(q.ctx)
		if err != nil {
			return clusterProblem(err)
		}
		members := q.door.srv.Members()
		for i := range survey.Members {
			m := &survey.Members[i]
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
