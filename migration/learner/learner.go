package learner

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// Config is what a Learner needs. The zero values of the durations and sizes mean the defaults.
type Config struct {
	// Servers are the quorum ports of the voters, of which only the leader listens, or followers' observerMasterPorts.
	Servers []string
	// ID is our server id. It must be in no configuration of the ensemble, because a voter's would count in elections.
	ID int64
	// Timeout is how long the leader may be silent (it pings twice a tick), and may take to accept what we write.
	// Default: 10 s, as tickTime × syncLimit is in ZooKeeper's sample.
	Timeout time.Duration
	// SyncTimeout is how long the leader may be silent while it prepares what we miss. Default: 60 s.
	SyncTimeout time.Duration
	// MaxPacket bounds one packet in bytes. Its default of 64 MiB is far above ZooKeeper's default of 1 MiB for
	// jute.maxbuffer.
	MaxPacket int
	// MaxQueue bounds the bytes of transactions that have arrived and wait for the Handler. Default: 256 MiB.
	MaxQueue int
	// MaxSnapshot bounds the bytes of a snapshot. Default: 1 TiB.
	MaxSnapshot int64
	// TLS returns the configuration for a connection to a host; nil: no TLS. Unless it sets InsecureSkipVerify, the
	// certificate must name the host or its address by ZooKeeper's rules.
	TLS func(host string) *tls.Config
	// SASL are the credentials for servers with quorum.auth.enableSasl; nil: none.
	SASL *SASL
	// Dial opens a connection; nil: TCP.
	Dial   func(ctx context.Context, address string) (net.Conn, error)
	Logger *slog.Logger // nil: none
}

// The defaults of Config.
const (
	DefaultTimeout     = 10 * time.Second
	DefaultSyncTimeout = 60 * time.Second
	DefaultMaxPacket   = 64 << 20
	DefaultMaxQueue    = 256 << 20
	DefaultMaxSnapshot = 1 << 40
)

// Position is what the caller holds for good.
type Position struct {
	// Zxid is that of the last transaction, or of the Snapshot if none followed. 0: nothing, which brings a Snapshot.
	Zxid znode.Zxid
	// Epoch is the highest that Handler.Leader was told. A leader of an older one is refused.
	Epoch int64
}

// Handler receives what the leader sends, in its order, on Follow's goroutine. It may take its time: what arrives
// meanwhile waits, up to Config.MaxQueue. An error ends Follow, which returns it.
type Handler interface {
	// Leader is called first, once the leader has a quorum. From then on Learner's Request, Revalidate, Sync and Touch
	// can be used.
	Leader(Leader) error
	// Snapshot is called next if the leader sent one. It replaces all that the caller holds, and is complete and
	// consistent: digests count from here. The callee owns it.
	Snapshot(*replica.Replica) error
	// Transaction is called for each transaction after the Position or the Snapshot. raw is what ParseTxn reads; the
	// callee owns both.
	Transaction(raw []byte, t *replica.Txn) error
	// Revalidated answers a Revalidate: whether the session lives, and is ours to keep alive.
	Revalidated(session znode.SessionID, valid bool) error
	// Synced answers the oldest Sync that has no answer yet.
	Synced() error
}

// Leader is what Follow has found.
type Leader struct {
	Server string // of Config.Servers
	Epoch  int64  // to be kept for the next Position
	Sync   string // how it brings us up to date: SNAP, DIFF or TRUNC
	// Config is the text of the ensemble's configuration, for ParseMembers; "" from ZooKeeper 3.4. Later ones are the
	// data of transactions with OpReconfig.
	Config string
}

// The errors of Follow, besides those of the Handler, of the context and of the network, after which the caller starts
// again from its position. After those below it does where the text says so, and otherwise from nothing (Position.Zxid
// 0). Those of package replica mean that this build cannot read what the ensemble has; starting again does not help.
var (
	// ErrNoLeader reports that none of the servers answers as a leader. Start again from the position.
	ErrNoLeader = errors.New("no leader was found")
	// ErrOldLeader reports a leader of an older epoch than the position's, which was cut off from its ensemble, or
	// leads another. Start again from the position.
	ErrOldLeader = errors.New("the leader is of an older epoch")
	// ErrBehind reports that the Handler is slower than the ensemble, and Config.MaxQueue was reached. It has got all
	// that was received before. Start again from the position.
	ErrBehind = errors.New("too much is waiting for the handler")
	// ErrListed reports that the ensemble's configuration has a server with our id. Start again with another id.
	ErrListed = errors.New("the ensemble's configuration has our id")
	// ErrProtocol reports what no ZooKeeper server sends, or a bound of Config that is too small. The text says which.
	// Start again from the position.
	ErrProtocol = errors.New("the leader does not speak ZooKeeper's protocol as it should")
	// ErrRefused reports that the server does not take our SASL credentials, or cannot prove that it knows them.
	ErrRefused = errors.New("SASL authentication failed")
	// ErrGap reports that a transaction is missing, or comes twice, or cannot follow the one before it.
	ErrGap = errors.New("the transactions have a gap")
	// ErrFar reports that the leader sends more missed transactions at once than Config.MaxQueue allows.
	ErrFar = errors.New("the position is too far behind")
)

// TruncatedError reports that the leader has asked to take back transactions that it or a former leader had reported as
// committed: the ensemble has lost them. Do not start again by yourself: someone must decide which history is right.
type TruncatedError struct {
	To   znode.Zxid // the last transaction that the leader has, of ours
	Have znode.Zxid // the Position's
}

// Error says what was lost.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the leader has only transactions up to %v of those that were committed up to %v: "+
		"the ensemble has lost the others", e.To, e.Have)
}

// Learner follows one ensemble. Its methods but Follow may be called from any goroutine.
type Learner struct {
	cfg Config

	mu     sync.Mutex                // protects the fields below
	first  int                       // of the servers, to be tried first: the last that was the leader
	live   *conn                     // from Handler.Leader until the connection ends; nil otherwise
	queue  *queue                    // of the last Follow; nil before the first
	touch  map[znode.SessionID]int32 // timeouts of the sessions to be named with the next ping
	status Status                    // without Queued
}

// Status is what a Learner does at present.
type Status struct {
	Server   string     // connected to; "" if it is not
	Synced   bool       // the Handler has been told of all that it missed, or the queue holds it
	Received znode.Zxid // last transaction received; the Handler may be behind it
	Proposed znode.Zxid // last transaction that the leader had proposed at its last ping
	Queued   int        // bytes that wait for the Handler
}

// New returns a Learner that is not connected. It panics if Config has no server.
func New(cfg Config) *Learner {
	if len(cfg.Servers) == 0 {
		panic("learner: no servers")
	}
	orDefault(&cfg.Timeout, DefaultTimeout)
	orDefault(&cfg.SyncTimeout, DefaultSyncTimeout)
	orDefault(&cfg.MaxPacket, DefaultMaxPacket)
	orDefault(&cfg.MaxQueue, DefaultMaxQueue)
	orDefault(&cfg.MaxSnapshot, DefaultMaxSnapshot)
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Learner{cfg: cfg, touch: map[znode.SessionID]int32{}}
}

func orDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
