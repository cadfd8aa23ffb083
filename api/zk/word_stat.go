package zk

import (
	"fmt"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// srvr is how the server is.
func (a *answer) srvr() { a.serverStats(false) }

// stat is srvr with a line for every connection.
func (a *answer) stat() { a.serverStats(true) }

func (a *answer) serverStats(clients bool) {
	a.line("Zookeeper version: %s", a.listener.cfg.fullVersion())
	if a.readOnly {
		a.line("READ-ONLY mode; serving only read-only clients")
	}
	if clients {
		a.line("Clients:")
		for _, c := range a.listener.snapshot() {
			a.line("%s", c.describe(a.conn, true))
		}
		a.line("")
	}
	t := a.listener.totals()
	var zxid znode.Zxid
	var size znode.Size
	a.look(func(v *server.View) { zxid, size = v.Zxid(), v.Tree().Size() })
	mode := a.listener.srv.ReadOnly.Mode()
	a.line("Latency min/avg/max: %d/%s/%d",
		t.shortest.Milliseconds(), metrics.JavaDouble(t.averageMillis()), metrics.WholeMillis(t.longest))
	a.line("Received: %d", t.received)
	a.line("Sent: %d", t.sent)
	a.line("Connections: %d", t.connections)
	a.line("Outstanding: %d", t.outstanding)
	a.line("Zxid: %s", zxid)
	a.line("Mode: %s", mode)
	a.line("Node count: %d", nodeCount(size))
	if mode == string(consensus.RoleLeader) {
		last, smallest, largest := a.listener.proposalSizes()
		a.line("Proposal sizes last/min/max: %d/%d/%d", last, smallest, largest)
	}
}

// proposalSizes are -1 as long as they are not known, as ZooKeeper has it.
func (ln *Listener) proposalSizes() (last, smallest, largest int64) {
	if ln.cfg.Proposals == nil {
		return -1, -1, -1
	}
	return ln.cfg.Proposals.Sizes()
}

// nodeCount is ZooKeeper's: it counts the root twice, as "/" and as "".
func nodeCount(s znode.Size) int { return s.Znodes + 1 }

// mntr lists the metrics that monitors read, a key and a value on each line.
// Keys that only a JVM or Zab can have are left out.
func (a *answer) mntr() {
	ln := a.listener
	role, mode := ln.srv.Status().Role, ln.srv.ReadOnly.Mode()
	a.line("zk_version\t%s", ln.cfg.fullVersion())
	a.line("zk_server_state\t%s", mode)
	if role != consensus.RoleStandalone && !a.readOnly {
		a.line("zk_peer_state\t%s", metrics.PeerState(role))
	}
	all := metrics.Take(ln.Metrics, metrics.OfServer(ln.srv, ln.started), ln.cfg.Metrics)
	all.Mntr(func(key, value string) { a.line("%s\t%s", key, value) })
}

// cons has a line for every connection.
func (a *answer) cons() {
	for _, c := range a.listener.snapshot() {
		a.line("%s", c.describe(a.conn, false))
	}
	a.line("")
}

// describe is a connection's line (ServerCnxn.dumpConnectionInfo). The number
// in brackets is 1 for a connection that is read from; the one that asks is
// not.
func (c *conn) describe(asking *conn, brief bool) string {
	c.out.mu.Lock()
	s := c.out.stats
	c.out.mu.Unlock()
	reading := 1
	if c == asking {
		reading = 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, " /%s[%d](queued=%d,recved=%d,sent=%d",
		c.remote, reading, c.pending.Load(), s.conn.received, s.conn.sent)
	if sc := c.sc.Load(); !brief && sc != nil {
		if id, timeout := sc.Session(); id != 0 {
			fmt.Fprintf(&b, ",sid=%s,lop=%s,est=%d,to=%d",
				id, lettersOf(s.lastOp), c.since.UnixMilli(), timeout.Milliseconds())
			if s.lastXid >= 0 {
				fmt.Fprintf(&b, ",lcxid=0x%x", int32(s.lastXid))
			}
			fmt.Fprintf(&b, ",lzxid=%s,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
				s.lastZxid, unixMillis(s.lastAnswer), s.lastLatency.Milliseconds(),
				s.conn.shortest.Milliseconds(), int64(s.conn.averageMillis()),
				metrics.WholeMillis(s.conn.longest))
		}
	}
	b.WriteByte(')')
	return b.String()
}

// unixMillis is 0 for the zero Time.
func unixMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// crst resets the connections' metrics.
func (a *answer) crst() {
	a.listener.ResetConnections()
	a.line("Connection stats reset.")
}

// srst resets the server's metrics.
func (a *answer) srst() {
	a.listener.ResetTotals()
	a.line("Server stats reset.")
}
