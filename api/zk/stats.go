package zk

import (
	"cmp"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// counters counts requests and how long they took.
type counters struct {
	received int64
	sent     int64
	bytesIn  int64
	bytesOut int64
	requests int64
	total    time.Duration
	shortest time.Duration
	longest  time.Duration

	lastOut, minOut, maxOut int64     // bytes of a message sent; 0: none yet
	lastAt                  time.Time // when a request was answered
}

// out counts n bytes that are one message.
func (t *counters) out(n int64) {
	t.bytesOut += n
	if t.maxOut == 0 || n < t.minOut {
		t.minOut = n
	}
	t.lastOut, t.maxOut = n, max(t.maxOut, n)
}

// request counts one answered request.
func (t *counters) request(d time.Duration) {
	if t.requests == 0 || d < t.shortest {
		t.shortest = d
	}
	t.longest = max(t.longest, d)
	t.requests++
	t.total += d
}

// add counts all that u did.
func (t *counters) add(u *counters) {
	t.received += u.received
	t.sent += u.sent
	t.bytesIn += u.bytesIn
	t.bytesOut += u.bytesOut
	if u.maxOut > 0 {
		if t.maxOut == 0 || u.minOut < t.minOut {
			t.minOut = u.minOut
		}
		if t.maxOut == 0 || u.lastAt.After(t.lastAt) {
			t.lastOut, t.lastAt = u.lastOut, u.lastAt
		}
		t.maxOut = max(t.maxOut, u.maxOut)
	}
	if u.requests == 0 {
		return
	}
	if t.requests == 0 || u.shortest < t.shortest {
		t.shortest = u.shortest
	}
	t.longest = max(t.longest, u.longest)
	t.requests += u.requests
	t.total += u.total
}

// averageMillis is the mean latency in milliseconds.
func (t *counters) averageMillis() float64 {
	if t.requests == 0 {
		return 0
	}
	return float64(t.total.Microseconds()) / 1000 / float64(t.requests)
}

// timeShards keeps connections on several processors from counting in the same cache lines.
const timeShards = 8

// times are how long requests took, by what they were.
type times struct {
	reads, writes, pings histogram.Histogram
	operations           operationTimes
	_                    [64]byte // a cache line
}

func (t *times) of(r *request) *histogram.Histogram {
	switch {
	case r.op == wire.OpPing:
		return &t.pings
	case r.isCommand(), r.op == wire.OpCreateSession:
		return &t.writes
	}
	return &t.reads
}

// stats are one connection's metrics. They change under its outbox's lock, so
// that counting needs no lock of its own; cons shows them, srvr their sum.
type stats struct {
	conn   counters // since the start or crst
	server counters // since the start or srst

	lastOp      wire.OpCode
	lastXid     wire.Xid
	lastZxid    znode.Zxid
	lastAnswer  time.Time
	lastLatency time.Duration
}

// received counts one packet of n bytes.
func (s *stats) received(n int) {
	s.conn.received++
	s.server.received++
	s.server.bytesIn += int64(n)
}

// sent counts one packet; outbox.commit counts its bytes.
func (s *stats) sent() {
	s.conn.sent++
	s.server.sent++
}

// answered counts a request and its reply, and returns when that was.
func (s *stats) answered(r *request, zxid znode.Zxid) time.Time {
	now := time.Now()
	d := now.Sub(r.start)
	s.sent()
	s.conn.request(d)
	s.server.request(d)
	r.c.times.of(r).Observe(d)
	r.c.times.operations.of(r.op).Observe(d)
	s.lastOp, s.lastZxid = r.op, zxid
	if r.xid >= 0 { // the special ones are of no interest
		s.lastXid = r.xid
	}
	s.lastAnswer, s.lastLatency, s.server.lastAt = now, d, now
	return now
}

// opLetters is what cons calls the last operation (FinalRequestProcessor).
var opLetters = map[wire.OpCode]string{
	wire.OpPing: "PING", wire.OpCreateSession: "SESS", wire.OpCloseSession: "CLOS", wire.OpSync: "SYNC",
	wire.OpCreate: "CREA", wire.OpCreate2: "CREA", wire.OpCreateTTL: "CREA", wire.OpCreateContainer: "CREA",
	wire.OpDelete: "DELE", wire.OpDeleteContainer: "DELE", wire.OpSetData: "SETD", wire.OpSetACL: "SETA",
	wire.OpMulti: "MULT", wire.OpMultiRead: "MLTR", wire.OpReconfig: "RECO", wire.OpBranch: "BRAN",
	wire.OpExists: "EXIS", wire.OpGetData: "GETD", wire.OpGetACL: "GETA", wire.OpGetEphemerals: "GETE",
	wire.OpGetChildren: "GETC", wire.OpGetChildren2: "GETC", wire.OpGetAllChildrenNumber: "GETACN",
	wire.OpSetWatches: "SETW", wire.OpSetWatches2: "STW2", wire.OpAddWatch: "ADDW",
	wire.OpCheckWatches: "CHKW", wire.OpRemoveWatches: "REMW", wire.OpWhoAmI: "HOMI",
}

// lettersOf is NA before the first operation.
func lettersOf(op wire.OpCode) string { return cmp.Or(opLetters[op], "NA") }

// countReceived counts a request frame of n bytes.
func (o *outbox) countReceived(n int) {
	o.mu.Lock()
	o.stats.received(n)
	o.mu.Unlock()
}

// snapshot lists the connections, the oldest first.
func (ln *Listener) snapshot() []*conn {
	ln.mu.Lock()
	all := make([]*conn, 0, len(ln.conns))
	for c := range ln.conns {
		all = append(all, c)
	}
	ln.mu.Unlock()
	slices.SortFunc(all, func(x, y *conn) int { return x.since.Compare(y.since) })
	return all
}

// totals are the metrics of all connections, present and past.
type totals struct {
	counters
	connections int
	outstanding int64
	rejected    int64
}

func (ln *Listener) totals() totals {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	t := totals{counters: ln.past, connections: len(ln.conns), rejected: ln.rejected}
	for c := range ln.conns {
		t.outstanding += int64(c.pending.Load())
		c.out.mu.Lock()
		t.add(&c.out.stats.server)
		c.out.mu.Unlock()
	}
	return t
}

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
	emit("readlatency", histogram.Summary(reads))
	emit("updatelatency", histogram.Summary(writes))
	ln.operationMetrics(emit)
	if open, err := process.OpenDescriptors(); err == nil {
		emit("open_file_descriptor_count", open)
	}
	if limit, err := process.MaxDescriptors(); err == nil {
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
		LastOp: lettersOf(s.lastOp), LastXid: int32(s.lastXid), LastZxid: s.lastZxid,
		LastAnswer: s.lastAnswer, LastLatency: s.lastLatency,
		MinLatency: s.conn.shortest, MaxLatency: s.conn.longest,
		AvgLatencyMillis: s.conn.averageMillis(),
	}
	if sc := c.sc.Load(); sc != nil {
		out.Session, out.Timeout = sc.Session()
	}
	return out
}

// ResetTotals resets the metrics of Totals and those of the proposals, but not the numbers of
// open connections and waiting requests.
func (ln *Listener) ResetTotals() {
	if ln.cfg.Proposals != nil {
		ln.cfg.Proposals.ResetSizes()
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

// ResetConnections resets the metrics of every connection.
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
