package zk

import (
	"fmt"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/consensus"
)

// mntr lists the metrics that monitors read, a key and a value on each line.
// Keys that only a JVM or Zab can have are left out.
func (a *answer) mntr() {
	ln := a.listener
	role := ln.srv.Status().Role
	a.line("zk_version\t%s", ln.cfg.fullVersion())
	a.line("zk_server_state\t%s", role)
	if role != consensus.RoleStandalone {
		a.line("zk_peer_state\t%s", peerState(role))
	}
	all := metrics.Take(ln.Metrics, metrics.OfServer(ln.srv, ln.started), ln.cfg.Metrics)
	all.Mntr(func(key, value string) { a.line("%s\t%s", key, value) })
}

// peerState is the role in the words of ZooKeeper's QuorumPeer.
func peerState(r consensus.Role) string {
	switch r {
	case consensus.RoleLeader:
		return "leading - broadcast"
	case consensus.RoleFollower:
		return "following - broadcast"
	case consensus.RoleObserver:
		return "observing - broadcast"
	}
	return fmt.Sprint(r)
}
