package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Config is what a Node is made of.
type Config struct {
	ID      state.ServerID
	Servers []membership.Server // the whole ensemble, this server included
	// Publish is what the ensemble shows clients of this server in
	// /zookeeper/config; nil publishes nothing.
	Publish *state.Member

	// Listener takes the other servers' connections; the Node closes it. nil: standalone, one server
	// alone forever.
	Listener net.Listener
	// Dial connects to another server; nil means TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Verify refuses a connection that claims to come from a server and has not proved it; nil: no proof is needed.
	// The host is empty if it is not known where that server is.
	Verify func(c net.Conn, id state.ServerID, host string) error
	// Keys are how the servers know each other; nil: by Verify, or not at all.
	Keys    *peerkeys.Keys
	Storage storage.Store
	Handler Handler
	Logger  *slog.Logger
	// Fatal is called once when this server cannot go on and its process should
	// end: damage on disk, a log it does not understand. Nothing is
	// acknowledged afterwards.
	Fatal func(error)

	ElectionTimeout  time.Duration        // 0: 1 s; also the heartbeat timeout
	Autopilot        membership.Autopilot // what the leader changes in the ensemble by itself
	CheckInterval    time.Duration        // between comparisons of the servers' states; 0: there are none
	SnapshotCommands int                  // between snapshots, for each 64 MiB of the state; 0: 100,000
	MaxPending       int                  // commands of this server without a result; 0: 1000
	MaxPendingBytes  int                  // and their size; 0: 64 MiB
	TreeLimit        int64                // memory that the tree may take on this server, in bytes; 0: no limit
	TrailingLogs     uint64               // entries kept behind a snapshot, for slow followers; 0: 4096
	TrailingBytes    int64                // and at most so many bytes of them, in a raftlog; 0: 64 MiB
	NoPush           bool                 // see transport.Options
	NoOverlap        bool
	NoFailover       bool
}

const (
	trailingLogs  = 4096 // entries kept behind a snapshot, for slow followers
	trailingBytes = 64 << 20
	// snapshotBytes is the least log that is worth a snapshot, however few commands it has; for a larger state it is
	// the size of the last snapshot, or this share of the state's memory, where that is more. A share of four asks for
	// as many snapshots as SnapshotCommands does of sets of 100 bytes.
	snapshotBytes = 32 << 20
	snapshotShare = 4
	// snapshotMemory is how much memory of the state is worth as many commands again before a snapshot. To write a
	// large state every 100,000 commands took a sixth of the processors' time while znodes were created.
	snapshotMemory = 64 << 20
)

const defaultElectionTimeout = time.Second

// loneElection is how long a lone server waits, at its start, for a leader that
// there cannot be.
const loneElection = 50 * time.Millisecond

// check finds what is wrong with c, and fills in defaults.
func (c *Config) check() error {
	if c.ID > state.MaxServerID {
		return fmt.Errorf("server id %d is not between 0 and %d", c.ID, state.MaxServerID)
	}
	seen, voters := map[state.ServerID]bool{}, 0
	for _, s := range c.Servers {
		if seen[s.ID] {
			return fmt.Errorf("server id %d is configured twice", s.ID)
		}
		seen[s.ID] = true
		if s.Voter {
			voters++
		}
	}
	switch {
	case !seen[c.ID]:
		return fmt.Errorf("server id %d is not among the configured servers", c.ID)
	case voters == 0:
		return errors.New("no configured server may vote")
	case len(c.Servers) > 1 && c.Listener == nil:
		return errors.New("an ensemble needs a listener for its peer port")
	}
	if c.ElectionTimeout <= 0 {
		c.ElectionTimeout = defaultElectionTimeout
	}
	if c.SnapshotCommands <= 0 {
		c.SnapshotCommands = 100_000
	}
	if c.MaxPending <= 0 {
		c.MaxPending = 1000
	}
	if c.MaxPendingBytes <= 0 {
		c.MaxPendingBytes = 64 << 20
	}
	if c.TrailingLogs == 0 {
		c.TrailingLogs = trailingLogs
	}
	if c.TrailingBytes == 0 {
		c.TrailingBytes = trailingBytes
	}
	if c.Dial == nil {
		var d net.Dialer
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	return nil
}

func (c *Config) standalone() bool { return c.Listener == nil }

// Handler gets what is applied, and what this server becomes. Everything but Lead, Touched and Halted is called on the
// goroutine that applies the log, and nothing may block.
type Handler interface {
	// BeginApply and EndApply enclose the changes of the state machine.
	BeginApply()
	EndApply()
	// Entry comes after BeginApply with the times of the entry that is applied. They are valid until EndApply; Sent
	// changes from result to result.
	Entry(t *forward.Times)
	// StateReplaced replaces the state machine.
	StateReplaced(m *state.Machine)
	Changes

	// Lead reports that this server leads since the given term, or, with 0, that
	// it no longer does.
	Lead(term uint64)
	// Touched reports, on the leader, sessions whose clients a server has heard. It
	// comes several times per tick, also when there are none.
	Touched(by state.ServerID, ids []znode.SessionID)
	// Halted reports, on any goroutine, that nothing more is applied here: Status.Halt says why.
	Halted()
}

// Changes are those of the state machine, as it reports them to its state.Observer; results go to their Waiters.
type Changes interface {
	Event(e *znode.Event)
	SessionOpened(s *session.Session)
	SessionAttached(s *session.Session, previous state.ServerID)
	SessionClosed(s *session.Session, ephemerals []string, expired bool)
	QuotaExceeded(path string)
	Relayed(number uint64, r *state.Result)
}
