package zk

import (
	"log/slog"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/insight"
)

// The defaults of Config.
const (
	// DefaultOutboxBytes lets some ten of the largest replies wait.
	DefaultOutboxBytes = 16 << 20
	// DefaultOutboxTotal is for a machine whose memory is not known.
	DefaultOutboxTotal = 1 << 30
	// DefaultPartialBytes lets some sixty of the largest requests arrive at a time.
	DefaultPartialBytes = 64 << 20
	// DefaultHandshakeTimeout is ZooKeeper's nio.sessionlessCnxnTimeout.
	DefaultHandshakeTimeout = 10 * time.Second
	// DefaultWriteTimeout is the default of ZooKeeper's longest session timeout
	// with the sample configuration's tick: a client that has taken nothing for
	// that time cannot have a session anyway.
	DefaultWriteTimeout = 40 * time.Second
	// CompatibleVersion is the ZooKeeper version that clients and monitors get to
	// see, because some choose features by it.
	CompatibleVersion = "3.9.5"
	// BuildDateFormat is how ZooKeeper wrote the date until 3.6, for package time. Parsers of
	// that time, such as go-zookeeper's, refuse ZooKeeper's newer form; the newer ones read both.
	BuildDateFormat = "01/02/2006 15:04 GMT"
	// UnknownBuildDate is a date that all can parse and no one takes for real.
	UnknownBuildDate = "01/01/1970 00:00 GMT"
)

// Config configures a Listener. The zero value of every field is usable.
type Config struct {
	Version   string // zk-lite's own, such as 0.1.0; empty: dev
	BuildDate string // as it is printed after "built on"; empty: UnknownBuildDate

	MaxFrame         int                      // largest request frame in bytes (jute.maxbuffer); 0: 1,048,575
	OutboxBytes      int                      // bytes that may wait for one client; 0: DefaultOutboxBytes
	OutboxTotal      int64                    // bytes that may wait for all clients; 0: DefaultOutboxTotal
	PartialBytes     int                      // for partial requests (largeRequestMaxBytes); 0: DefaultPartialBytes
	MaxPerAddress    int                      // connections from one address (maxClientCnxns); 0: no bound
	MaxConnections   int                      // connections in all (maxCnxns); 0: no bound
	Descriptors      *process.DescriptorShare // of the process; nil: no bound
	Throttle         ConnectionThrottle       // of sessions; zero: none
	MaxRequests      int                      // that wait for their result (requestThrottleLimit); 0: no bound
	HandshakeTimeout time.Duration            // for a connection without session; 0: 10 s
	WriteTimeout     time.Duration            // for a write to make progress; 0: DefaultWriteTimeout
	LeaveTimeout     time.Duration            // for a client to be sent away when the server stops; 0: 1 s

	Reconfig  bool // reconfig is answered (reconfigEnabled)
	MinVoters int  // that a reconfig must leave

	// Words lists the four-letter words that are answered
	// (4lw.commands.whitelist), "*" for all. srvr always is, as in ZooKeeper.
	Words []string

	Settings Settings  // what conf, envi and dirs print
	HTTP     *HTTPPort // where HTTP clients of this port are sent; nil: there is no HTTP port

	Proposals *forward.Stats // of the entries that this server proposes; nil: not known, printed as -1
	Metrics   metrics.Part   // of other parts of the server; nil: none
	// Digests lists the digests of the state that hash prints, oldest first.
	// nil: none are kept.
	Digests func() []Digest

	Audit  *audit.Log       // nil: none
	Slow   *insight.SlowLog // nil: none
	Logger *slog.Logger     // nil: slog.Default
}

// Settings are settings of the whole server that four-letter words print.
type Settings struct {
	ClientPort       func() int // -1, or nil: none
	SecureClientPort int        // -1: none
	DataDir          string
	DataLogDir       string
	ListenBacklog    int // -1: the system's
	InitLimit        int // ticks
	SyncLimit        int // ticks
	ElectionPort     int
	QuorumPort       int
	Observer         bool
}

// Digest is a number that replicas with the same state share.
type Digest struct {
	Zxid  uint64
	Value uint64
}

func (c Config) withDefaults() Config {
	if c.Settings.ClientPort == nil {
		c.Settings.ClientPort = func() int { return -1 }
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.BuildDate == "" {
		c.BuildDate = UnknownBuildDate
	}
	if c.MaxFrame <= 0 {
		c.MaxFrame = wire.DefaultMaxFrame
	}
	if c.OutboxBytes <= 0 {
		c.OutboxBytes = DefaultOutboxBytes
	}
	if c.OutboxTotal <= 0 {
		c.OutboxTotal = DefaultOutboxTotal
	}
	if c.PartialBytes <= 0 {
		c.PartialBytes = DefaultPartialBytes
	}
	if c.HandshakeTimeout <= 0 {
		c.HandshakeTimeout = DefaultHandshakeTimeout
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	if c.LeaveTimeout <= 0 {
		c.LeaveTimeout = defaultLeaveTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// fullVersion is printed after "Zookeeper version: ".
func (c *Config) fullVersion() string {
	return CompatibleVersion + "-zk-lite-" + c.Version + ", built on " + c.BuildDate
}

// allowed returns the set of words that are answered.
func (c *Config) allowed() map[string]bool {
	set := map[string]bool{"srvr": true}
	for _, w := range c.Words {
		switch w = strings.TrimSpace(w); w {
		case "":
		case "*":
			for name := range words() {
				set[name] = true
			}
		default:
			set[w] = true
		}
	}
	return set
}
