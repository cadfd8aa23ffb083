package zk

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// mntr lists the figures that monitors read, a key and a value on each line.
// Keys that only a JVM or Zab can have are left out.
func (a *answer) mntr() {
	d := a.listener
	status := d.srv.Status()
	a.metric("version", d.cfg.fullVersion())
	a.metric("server_state", string(status.Role))
	ensemble := status.Role != server.RoleStandalone
	if ensemble {
		a.metric("peer_state", peerState(status.Role))
	}
	a.metric("uptime", time.Since(d.started).Milliseconds())
	d.Emit(a.metric)
	a.stateMetrics()
	fault := 0
	if status.DiskFault != "" {
		fault = 1
	}
	a.metric("disk_fault", fault)
	if ensemble {
		a.metric("quorum_size", status.Voters)
	}
	if status.Role == server.RoleLeader {
		a.leaderMetrics(&status)
	}
	if d.cfg.Metrics != nil {
		d.cfg.Metrics(a.metric)
	}
}

// stateMetrics are those of the tree, the sessions and the watches.
func (a *answer) stateMetrics() {
	var size znode.Size
	var watches watch.Summary
	var sessions int
	a.look(func(v *server.View) {
		size, watches = v.Tree().Size(), v.Watches().Summary()
		sessions = v.Machine().Sessions().Len()
	})
	a.metric("znode_count", nodeCount(size))
	a.metric("watch_count", watches.Total)
	a.metric("ephemerals_count", size.Ephemerals)
	a.metric("approximate_data_size", size.Bytes)
	a.metric("global_sessions", sessions)
	a.metric("local_sessions", 0) // there is no such kind here
}

// leaderMetrics are those that ZooKeeper's leader alone has. A server here is
// either a voter or an observer, and a sync is an entry of the log that waits
// like any other, so two of them are always 0. Its uptime and the sizes of its
// proposals come by Config.Metrics.
func (a *answer) leaderMetrics(s *server.Status) {
	a.metric("learners", s.Followers+s.Observers)
	a.metric("synced_followers", s.Followers)
	a.metric("synced_non_voting_followers", 0)
	a.metric("synced_observers", s.Observers)
	a.metric("pending_syncs", 0)
}

func (a *answer) metric(key string, value any) {
	if v, ok := value.(float64); ok {
		value = javaDouble(v)
	}
	a.line("zk_%s\t%v", key, value)
}

// peerState is the role in the words of ZooKeeper's QuorumPeer.
func peerState(r server.Role) string {
	switch r {
	case server.RoleLeader:
		return "leading - broadcast"
	case server.RoleFollower:
		return "following - broadcast"
	case server.RoleObserver:
		return "observing - broadcast"
	}
	return fmt.Sprint(r)
}
