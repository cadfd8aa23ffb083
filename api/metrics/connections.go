package metrics

import (
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// Totals are the metrics of all connections, present and past: since the start, or
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

// WholeMillis rounds a maximum up, so that no average, which has a fraction, is above it.
func WholeMillis(longest time.Duration) int64 {
	return (longest + time.Millisecond - 1).Milliseconds()
}

// Connection is one connection's metrics (ServerCnxn.getConnectionInfo).
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
