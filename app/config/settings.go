package config

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/dns"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/server/backup"
)

// Settings is the outcome: every value resolved, checked and typed. A setting is a field of the Config of the package
// that obeys it. The other fields are for values that several packages need, and for those that decide which parts a
// server has. Package app adds to the Configs these values, and what is no setting: loggers, listeners, each other.
type Settings struct {
	ConfigFile string // the zoo.cfg that was read; "" for none

	Consensus consensus.Config
	Storage   storage.Config
	Server    server.Config // the request path
	ZooKeeper zk.Config     // ZooKeeper's port
	HTTP      rest.Config   // the HTTP port
	DNS       dns.Config    // the DNS port
	Auth      auth.Config
	SASL      SASL
	TLS       TLS
	PeerTLS   PeerTLS
	Audit     audit.Config
	Backup    backup.Config // with neither directory nor command: none
	Mirror    Mirror

	DataDir    string
	DataLogDir string // Raft's log; DataDir unless set
	SyncLimit  int    // ticks

	// The ensemble. Servers is empty for a standalone server without a
	// list. MyID is the id of this server, and 1 if it is standalone without one.
	Servers           []Server
	MyID              int
	PeerType          Role
	Standalone        bool // not an ensemble: at most one voting server, and allowed to be alone
	StandaloneEnabled bool
	// QuorumListenOnAllIPs makes the peer port listen on all interfaces
	// instead of the address in this server's own line.
	QuorumListenOnAllIPs bool
	Autopilot            bool // whether Consensus.Autopilot counts

	// The ZooKeeper port.
	ClientPort              int    // 0: any free port; NoPort: none
	ClientPortAddress       string // "": all interfaces
	SecureClientPort        int    // with TLS; 0: any free port; NoPort: none
	SecureClientPortAddress string // "": all interfaces
	PortUnification         bool   // TLS on ClientPort, too

	// The HTTP port.
	AdminEnabled bool
	AdminPort    int    // 0: any free port
	AdminAddress string // "": all interfaces
	// With any of them the port speaks TLS.
	AdminForceHTTPS, AdminPortUnification, AdminNeedClientAuth bool
	TokenFile                                                  string // "": there are no tokens

	// The DNS port, of UDP and TCP.
	DNSPort    int    // 0: any free port; NoPort: none
	DNSAddress string // "": all interfaces

	AuditEnabled bool

	// How the Go runtime is used.
	AdjustProcessors bool // GOMAXPROCS follows the load
	RawSystemCalls   bool // on sockets

	// What is printed.
	LoggerJSON  bool // else text
	LoggerLevel slog.Level

	words words
}

// words are values that are checked together with others and then turned into other fields.
type words struct {
	digestAlg                   string
	san                         san
	enforceAuth, requireSASL    bool
	superUser                   string // of SASL
	protocol, protocols, suites string // of TLS
	checkHost                   bool
	weighted                    bool // sessions count more than one for the throttle
	newWeight, renewWeight      int
}

// san is the keys ssl.x509.*.
type san struct {
	idType         string // subject or alternative
	kind, group    int
	match, extract string
}

// The values of san.idType.
const (
	subject     = "SDN"
	alternative = "SAN"
)

// Mirror is the keys about mirroring a ZooKeeper ensemble.
type Mirror struct {
	From   []string // peer addresses of an ensemble that an empty one of ours mirrors; nil: none
	Config string   // a zoo.cfg of that ensemble's; "": its servers speak neither TLS nor SASL to each other
}

// TLS is the keys ssl.*, checked. It is for clients of both ports.
type TLS struct {
	tlsfiles.Config
	ClientAuth string // ClientAuthNone, ClientAuthWant or ClientAuthNeed
	Reload     bool
	Handshakes int // that may be unfinished; 0: no bound
}

// The values of TLS.ClientAuth.
const (
	ClientAuthNone = "none"
	ClientAuthWant = "want"
	ClientAuthNeed = "need"
)

// PeerTLS is the keys for TLS between servers, checked.
type PeerTLS struct {
	tlsfiles.Config                 // of an operator's certificates
	Keys            peerkeys.Config // that servers make themselves, unless Files
	Wanted          bool            // sslQuorum: this server speaks TLS to the others
	Reload          bool
}

// Files reports whether the certificates of the peer port are an operator's (ssl.quorum.*).
func (p *PeerTLS) Files() bool { return p.Wanted || p.Keys.PlainToo && p.Key.Location != "" }

// SASL is the keys about SASL on the ZooKeeper port, checked.
type SASL struct {
	auth.SASL            // but for its functions
	File, Section string // of Java's login configuration; no File: there is no SASL
	SuperPassword string // of the user super with DIGEST-MD5; "": what the section says
	FIPS          bool   // no DIGEST-MD5
}

// NoPort is the number of a port that is not opened.
const NoPort = -1

// Own is this server's line of the list; false when there is no list.
func (s *Settings) Own() (Server, bool) {
	for _, srv := range s.Servers {
		if srv.ID == s.MyID {
			return srv, true
		}
	}
	return Server{}, false
}

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

// DNSListen is the address of the DNS port for net.Listen.
func (s *Settings) DNSListen() string { return net.JoinHostPort(s.DNSAddress, strconv.Itoa(s.DNSPort)) }

// Wanted reports whether any port speaks TLS.
func (s *Settings) Wanted() bool {
	return s.SecureClientPort != NoPort || s.PortUnification || s.AdminTLS()
}

// AdminTLS reports whether the HTTP port speaks TLS.
func (s *Settings) AdminTLS() bool {
	return s.AdminEnabled && (s.AdminForceHTTPS || s.AdminPortUnification || s.AdminNeedClientAuth)
}

// LeaderContactLimit is how long a server may be without contact to a leader
// before it stops serving: syncLimit x tickTime, as in ZooKeeper.
func (s *Settings) LeaderContactLimit() time.Duration {
	return time.Duration(s.SyncLimit) * s.Server.Tick
}

// Notice is something that was accepted and has no effect here, or another one
// than its author may expect. Log it once, at the start.
type Notice struct {
	Level  slog.Level // slog.LevelWarn, or LevelInfo if there is nothing to do about it
	Source string     // its place: "zoo.cfg:12", "flag --myid", ...
	Key    string     // or several, separated by commas
	Text   string
}

// String is the notice as one line.
func (n Notice) String() string {
	return n.Level.String() + " " + n.Source + ": " + n.Key + ": " + n.Text
}

// Error is one thing wrong with the configuration. Load joins all it finds.
type Error struct {
	Source  string // its place: "zoo.cfg:12", "environment ZK_LITE_TICK_TIME", ...
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
