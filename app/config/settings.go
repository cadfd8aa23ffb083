package config

import (
	"crypto"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

// Settings is the outcome: every value resolved, checked and typed.
type Settings struct {
	ConfigFile string // the zoo.cfg that was read; "" for none

	// Time.
	TickTime          time.Duration
	InitLimit         int // ticks
	SyncLimit         int // ticks
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration
	ElectionTimeout   time.Duration
	CheckInterval     time.Duration // 0: off

	// What the leader changes in the ensemble by itself.
	Autopilot            bool
	AutopilotStableTime  time.Duration
	AutopilotRemoveAfter time.Duration // 0: never
	AutopilotMinVoters   int

	// Storage.
	DataDir         string
	DataLogDir      string // Raft's log; DataDir unless set
	LogStore        string // LogStoreRaftlog or LogStoreBoltDB
	DirectLog       bool
	OverlapSync     bool
	SnapCount       int
	SnapRetainCount int // at least 3

	// The ensemble. Servers is empty for a server that stands alone without a
	// list. MyID is the id of this server, and 1 if it is standalone without one.
	Servers    []Server
	MyID       int
	PeerType   Role
	Standalone bool // not an ensemble: at most one voting server, and allowed to be alone
	// QuorumListenOnAllIPs makes the peer port listen on all interfaces
	// instead of the address in this server's own line.
	QuorumListenOnAllIPs bool
	StandaloneEnabled    bool
	CommitPush           bool
	FastFailover         bool

	// The ZooKeeper port.
	ClientPort              int    // 0: any free port; NoPort: none
	ClientPortAddress       string // "": all interfaces
	SecureClientPort        int    // with TLS; 0: any free port; NoPort: none
	SecureClientPortAddress string // "": all interfaces
	PortUnification         bool   // TLS on ClientPort, too
	ClientPortListenBacklog int
	MaxClientCnxns          int      // for each address; 0: no bound
	MaxCnxns                int      // in all; 0: no bound
	FourLetterWords         []string // allowed ones, sorted, * resolved
	MaxBuffer               int      // bytes of a request's frame (jute.maxbuffer)
	SessionlessTimeout      time.Duration
	PartialBytes            int64 // of requests that have arrived in part
	GlobalOutstandingLimit  int   // requests of all clients that wait for agreement
	PendingBytes            int64 // and their bytes; 0: by the memory
	TreeBytes               int64 // memory that the tree may take; 0: by the memory
	OutboxBytes             int64 // replies and notifications that one connection lets wait
	WatchesPerConnection    int
	OutboxTotalBytes        int64 // of all clients; 0: by the memory
	WatchBytes              int64 // of all connections; 0: by the memory

	// What clients may do.
	ExtendedTypes          bool // containers are always there; TTL znodes need this
	EnforceQuota           bool
	ContainerCheckInterval time.Duration
	ContainerMaxPerMinute  int
	ContainerMaxNeverUsed  time.Duration // 0: a container that never had a child stays

	// Who is who.
	SuperDigest     string      // user and hash; "" for no super user
	SuperName       string      // subject of the super user's certificate; "": none
	Digest          crypto.Hash // of passwords
	DigestEnabled   bool
	TokenFile       string   // "": there are no tokens
	AdminIdentities []string // SCHEME:ID
	AuthSchemes     []string // of which a client needs one; none: it needs none
	EnsembleAuth    bool     // the scheme ensemble is known
	EnsembleNames   []string
	SkipACL         bool

	digestAlg   string
	enforceAuth bool

	// The HTTP port.
	AdminEnabled bool
	AdminPort    int    // 0: any free port
	AdminAddress string // "": all interfaces
	AdminOrigins []string
	AdminHosts   []string // names by which a port on loopback may be called; "*": any
	// With any of them the port speaks TLS.
	AdminForceHTTPS, AdminPortUnification, AdminNeedClientAuth bool

	TLS      TLS
	PeerTLS  PeerTLS
	Throttle Throttle
	Audit    Audit
	Backup   Backup
	SASL     SASL

	// How the Go runtime is used.
	AdjustProcessors bool // GOMAXPROCS follows the load
	RawSystemCalls   bool // on sockets

	// What is printed.
	LoggerFormat string // LoggerText or LoggerJSON
	LoggerLevel  slog.Level
	SlowRequest  time.Duration // from which on a request is slow; 0: none is
}

// The values of Settings.LogStore and Settings.LoggerFormat.
const (
	LogStoreRaftlog = "raftlog"
	LogStoreBoltDB  = "boltdb"
	LoggerText      = "text"
	LoggerJSON      = "json"
)

// ClientListen is the address of the ZooKeeper port for net.Listen.
func (s *Settings) ClientListen() string {
	return net.JoinHostPort(s.ClientPortAddress, strconv.Itoa(s.ClientPort))
}

// SecureClientListen is the address of the ZooKeeper port with TLS for net.Listen.
func (s *Settings) SecureClientListen() string {
	return net.JoinHostPort(s.SecureClientPortAddress, strconv.Itoa(s.SecureClientPort))
}

// AdminListen is the address of the HTTP port for net.Listen.
func (s *Settings) AdminListen() string {
	return net.JoinHostPort(s.AdminAddress, strconv.Itoa(s.AdminPort))
}

// LeaderContactLimit is how long a server may be without contact to a leader
// before it stops serving: syncLimit x tickTime, as in ZooKeeper.
func (s *Settings) LeaderContactLimit() time.Duration {
	return time.Duration(s.SyncLimit) * s.TickTime
}

// Own is this server's line of the list; false when there is no list.
func (s *Settings) Own() (Server, bool) {
	for _, srv := range s.Servers {
		if srv.ID == s.MyID {
			return srv, true
		}
	}
	return Server{}, false
}

// Notice is something that was accepted and has no effect here, or another one
// than its author may expect. It is to be logged once, at start.
type Notice struct {
	Level  slog.Level // slog.LevelWarn, or LevelInfo if there is nothing to do about it
	Source string     // where it stands: "zoo.cfg:12", "flag --myid", ...
	Key    string     // or several, separated by commas
	Text   string
}

// String is the notice as one line.
func (n Notice) String() string {
	return n.Level.String() + " " + n.Source + ": " + n.Key + ": " + n.Text
}

// Error is one thing wrong with the configuration. Load joins all it finds.
type Error struct {
	Source  string // where it stands: "zoo.cfg:12", "environment ZK_LITE_TICK_TIME", ...
	Key     string // the setting; may be empty
	Problem string // what is wrong
	Want    string // what would be right; may be empty
}

// Error is the text "source: key: problem; want".
func (e *Error) Error() string {
	var b strings.Builder
	for _, part := range []string{e.Source, e.Key} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	b.WriteString(e.Problem)
	if e.Want != "" {
		b.WriteString("; ")
		b.WriteString(e.Want)
	}
	return b.String()
}
