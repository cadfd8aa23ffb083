package zk

import (
	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/internal/descriptors"
	"github.com/zk-lite/zk-lite/internal/histogram"
)

// Totals adds up the metrics of all connections.
func (ln *Listener) Totals() metrics.Totals {
	t := ln.totals()
	out := metrics.Totals{
		PacketsReceived: t.received, PacketsSent: t.sent,
		BytesReceived: t.bytesIn, BytesSent: t.bytesOut,
		MinLatency: t.shortest, MaxLatency: t.longest, AvgLatencyMillis: t.averageMillis(),
		LastReplyBytes: -1, MinReplyBytes: -1, MaxReplyBytes: -1,
		Connections: t.connections, Outstanding: t.outstanding, Rejected: t.rejected,
		AuthFailed: ln.authFailed.Load(),
	}
	if t.maxOut > 0 {
		out.LastReplyBytes, out.MinReplyBytes, out.MaxReplyBytes = t.lastOut, t.minOut, t.maxOut
	}
	return out
}

// Metrics is the part of the ZooKeeper port and the process's files (metrics.Part).
func (ln *Listener) Metrics(emit func(name string, value any)) {
	t := ln.Totals()
	emit("avg_latency", t.AvgLatencyMillis)
	emit("min_latency", t.MinLatency.Milliseconds())
	emit("max_latency", metrics.WholeMillis(t.MaxLatency))
	emit("packets_received", t.PacketsReceived)
	emit("packets_sent", t.PacketsSent)
	emit("bytes_received_count", t.BytesReceived)
	emit("response_bytes", t.BytesSent)
	emit("last_client_response_size", t.LastReplyBytes)
	emit("min_client_response_size", t.MinReplyBytes)
	emit("max_client_response_size", t.MaxReplyBytes)
	emit("num_alive_connections", t.Connections)
	emit("outstanding_requests", t.Outstanding)
	emit("connection_rejected", t.Rejected)
	emit("large_requests_rejected", ln.partial.closed.Load())
	emit("outbox_bytes", ln.outboxes.sum())
	emit("outbox_overflows_total", ln.outboxes.closed.Load())
	emit("refused_replies_total", ln.longReplies.Load())
	emit("auth_failed_count", t.AuthFailed)
	var reads, writes, pings histogram.Counts
	for i := range ln.times {
		s := &ln.times[i]
		reads.Add(s.reads.Counts())
		writes.Add(s.writes.Counts())
		pings.Add(s.pings.Counts())
	}
	emit("request_duration_seconds", []metrics.Labelled{
		{Labels: `kind="read"`, Value: reads}, {Labels: `kind="write"`, Value: writes},
		{Labels: `kind="ping"`, Value: pings},
	})
	if open, err := descriptors.Open(); err == nil {
		emit("open_file_descriptor_count", open)
	}
	if limit, err := descriptors.Limit(); err == nil {
		emit("max_file_descriptor_count", limit)
	}
}

// Connections lists the open connections, the oldest first.
func (ln *Listener) Connections() []metrics.Connection {
	var list []metrics.Connection
	for _, c := range ln.snapshot() {
		list = append(list, c.metrics())
	}
	return list
}

func (c *conn) metrics() metrics.Connection {
	c.out.mu.Lock()
	s := c.out.stats
	c.out.mu.Unlock()
	out := metrics.Connection{
		Remote: c.remote, Outstanding: int(c.pending.Load()), Established: c.since,
		PacketsReceived: s.conn.received, PacketsSent: s.conn.sent,
		LastOp: opLetters(s.lastOp), LastXid: int32(s.lastXid), LastZxid: s.lastZxid,
		LastAnswer: s.lastAnswer, LastLatency: s.lastLatency,
		MinLatency: s.conn.shortest, MaxLatency: s.conn.longest,
		AvgLatencyMillis: s.conn.averageMillis(),
	}
	if sc := c.sc.Load(); sc != nil {
		out.Session, out.Timeout = sc.Session()
	}
	return out
}

// ResetTotals starts the metrics of Totals afresh, and those of the proposals; what is
// open or waits stays.
func (ln *Listener) ResetTotals() {
	if ln.cfg.Proposals != nil {
		ln.cfg.Proposals.ResetProposals()
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.past = counters{}
	for c := range ln.conns {
		c.out.mu.Lock()
		c.out.stats.server = counters{}
		c.out.mu.Unlock()
	}
}

// ResetConnections starts the metrics of every connection afresh.
func (ln *Listener) ResetConnections() {
	for _, c := range ln.snapshot() {
		c.out.mu.Lock()
		c.out.stats = stats{server: c.out.stats.server, lastXid: -1}
		c.out.mu.Unlock()
	}
}

// TraceMask is what gtmk prints; SetTraceMask changes it. It has no effect.
func (ln *Listener) TraceMask() int64 { return ln.trace.Load() }

// SetTraceMask is stmk.
func (ln *Listener) SetTraceMask(mask int64) { ln.trace.Store(mask) }

// DirSizes are the bytes of the files in the data directories.
func (ln *Listener) DirSizes() (data, log int64) {
	return directorySize(ln.cfg.Settings.DataDir), directorySize(ln.cfg.Settings.logDir())
}
