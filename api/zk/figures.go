package zk

import "github.com/zk-lite/zk-lite/api/figures"

// Totals adds up all connections' figures.
func (d *Door) Totals() figures.Totals {
	t := d.totals()
	out := figures.Totals{
		PacketsReceived: t.received, PacketsSent: t.sent,
		BytesReceived: t.bytesIn, BytesSent: t.bytesOut,
		MinLatency: t.shortest, MaxLatency: t.longest, AvgLatencyMillis: t.averageMillis(),
		LastReplyBytes: -1, MinReplyBytes: -1, MaxReplyBytes: -1,
		Connections: t.connections, Outstanding: t.outstanding, Rejected: t.rejected,
		AuthFailed: d.authFailed.Load(),
	}
	if t.maxOut > 0 {
		out.LastReplyBytes, out.MinReplyBytes, out.MaxReplyBytes = t.lastOut, t.minOut, t.maxOut
	}
	return out
}

// Emit lists the door's and the process's figures under the names that mntr has.
func (d *Door) Emit(emit func(key string, value any)) {
	t := d.Totals()
	emit("avg_latency", t.AvgLatencyMillis)
	emit("min_latency", t.MinLatency.Milliseconds())
	emit("max_latency", figures.WholeMillis(t.MaxLatency))
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
	emit("auth_failed_count", t.AuthFailed)
	if open, limit, err := fileDescriptors(); err == nil {
		emit("open_file_descriptor_count", open)
		emit("max_file_descriptor_count", limit)
	}
}

// Connections lists the open connections, the oldest first.
func (d *Door) Connections() []figures.Connection {
	var list []figures.Connection
	for _, c := range d.snapshot() {
		list = append(list, c.figures())
	}
	return list
}

func (c *conn) figures() figures.Connection {
	c.out.mu.Lock()
	s := c.out.stats
	c.out.mu.Unlock()
	out := figures.Connection{
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

// ResetTotals starts the figures of Totals afresh, and those of the proposals; what is
// open or waits stays.
func (d *Door) ResetTotals() {
	if d.cfg.Proposals != nil {
		d.cfg.Proposals.ResetProposals()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.past = tally{}
	for c := range d.conns {
		c.out.mu.Lock()
		c.out.stats.server = tally{}
		c.out.mu.Unlock()
	}
}

// ResetConnections starts the figures of every connection afresh.
func (d *Door) ResetConnections() {
	for _, c := range d.snapshot() {
		c.out.mu.Lock()
		c.out.stats = stats{server: c.out.stats.server, lastXid: -1}
		c.out.mu.Unlock()
	}
}

// TraceMask is what gtmk prints; SetTraceMask changes it. It has no effect.
func (d *Door) TraceMask() int64 { return d.trace.Load() }

// SetTraceMask is stmk.
func (d *Door) SetTraceMask(mask int64) { d.trace.Store(mask) }

// DirSizes are the bytes of the files in the data directories.
func (d *Door) DirSizes() (data, log int64) {
	return directorySize(d.cfg.Settings.DataDir), directorySize(d.cfg.Settings.logDir())
}
