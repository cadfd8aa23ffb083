package zk

import (
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// Totals are the figures of all connections, present and past: since the start, or
// since they were reset.
type Totals struct {
	PacketsReceived, PacketsSent int64
	BytesReceived, BytesSent     int64
	// Latency is from the arrival of a request to its reply, of those answered.
	MinLatency, MaxLatency time.Duration
	AvgLatencyMillis       float64
	// ReplyBytes are the sizes of what was sent, -1 before the first: the last one of
	// the connection that was answered last, the smallest and the largest.
	LastReplyBytes, MinReplyBytes, MaxReplyBytes int64

	Connections int   // open now
	Outstanding int64 // requests that are not answered yet
	Rejected    int64 // connections over a limit
	AuthFailed  int64
}

// Connection is one connection's figures (ServerCnxn.getConnectionInfo).
type Connection struct {
	Remote      string // address and port
	Outstanding int    // requests that are not answered yet

	PacketsReceived, PacketsSent int64

	Session          znode.SessionID // 0: no handshake yet
	Timeout          time.Duration   // of the session
	Established      time.Time
	LastOp           string // NA before the first
	LastXid          int32  // -1 before the first
	LastZxid         znode.Zxid
	LastAnswer       time.Time // zero before the first
	LastLatency      time.Duration
	MinLatency       time.Duration
	MaxLatency       time.Duration
	AvgLatencyMillis float64
}

// Totals adds up all connections' figures.
func (d *Door) Totals() Totals {
	t := d.totals()
	out := Totals{
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
	emit("max_latency", t.MaxLatency.Milliseconds())
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
func (d *Door) Connections() []Connection {
	var list []Connection
	for _, c := range d.snapshot() {
		list = append(list, c.figures())
	}
	return list
}

func (c *conn) figures() Connection {
	c.out.mu.Lock()
	s := c.out.stats
	c.out.mu.Unlock()
	out := Connection{
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

// ResetTotals starts the figures of Totals afresh; what is open or waits stays.
func (d *Door) ResetTotals() {
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
