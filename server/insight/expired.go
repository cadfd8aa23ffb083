package insight

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/journal"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// keepExpired is how many expired sessions are remembered: some 500 KB and their ephemerals' paths.
	keepExpired = 1000
	// maxExpiredPaths and maxExpiredPathBytes bound the paths that are remembered of one: some 1 MB for all.
	maxExpiredPaths, maxExpiredPathBytes = 10, 1 << 10
	// maxClientBytes bounds what is remembered of a client: its address and first identities.
	maxClientBytes = 256
	// maxDisconnected bounds the sessions without a connection that are remembered: some 20 MB, with the longest
	// identities 35 MB.
	maxDisconnected = 1 << 16
	// maxExpiredLines is how many of the sessions that expire at a time have a line in the log.
	maxExpiredLines = 5
)

// Why a session has expired, as far as one server can say.
const (
	// CauseServer: the leader had not heard from the server that carried the session either. That server, its machine,
	// or the network between the two had stopped.
	CauseServer = "server"
	// CausePaused: this server, which carried the session, did not run.
	CausePaused = "paused"
	// CauseDisconnected: its connection had ended, and its client did not come back.
	CauseDisconnected = "disconnected"
	// CauseSilent: the connection looked healthy, but the client sent nothing: its process or machine, or the network
	// to it, had stopped. For a session without a connection: no requests came.
	CauseSilent = "silent"
	// CauseElsewhere: another server carried it, which knows.
	CauseElsewhere = "elsewhere"
)

// ExpiredSession is a session that has expired, as one server knows it.
type ExpiredSession struct {
	ID         uint64    // its number on this server; they rise
	At         time.Time // when the server applied it
	Session    znode.SessionID
	Timeout    time.Duration
	Server     state.ServerID // that carried it
	Ephemerals int            // that went with it
	Paths      []string       // of the first of them
	Cause      string

	// What the leader knows; Led is set there.
	Led     bool
	Heard   time.Time      // when the leader last heard of the client, or began to wait for it
	HeardBy state.ServerID // the server that heard the client then; NoServer: none since this leader waits
	// ServerSilent is for how long the leader had not heard from Server.
	ServerSilent time.Duration

	// What Server knows.
	Client    Client    // of its last connection
	Connected bool      // its connection was open
	LastByte  time.Time // about when something last came on it; zero: not known
	Ended     time.Time // when its last connection ended; zero: not known
	EndReason string
	Watches   int           // of its last connection
	Paused    time.Duration // for how long this server did not run meanwhile
}

// Expirations remembers the newest sessions that have expired, and what may be needed to explain it. It is safe for
// concurrent use; nothing else is locked under its lock.
type Expirations struct {
	self   state.ServerID
	logger *slog.Logger

	mu           sync.Mutex // protects the fields below
	expired      journal.Journal[ExpiredSession]
	disconnected map[znode.SessionID]disconnection
	proposed     map[znode.SessionID]session.Silent // whose expiry this leader has proposed
	reported     map[state.ServerID]time.Time       // when this leader last heard from a server
	pausedAt     time.Time                          // the end of the last pause of this server
	paused       time.Duration
}

// Client is who was connected.
type Client struct {
	Address    string // and port
	Identities []znode.ID
}

// kept is what is remembered of a client: no hashes, and at most maxClientBytes.
func (c Client) kept() Client {
	k, left := Client{Address: c.Address}, maxClientBytes-len(c.Address)
	for _, id := range c.Identities {
		id.ID = znode.WithoutHash(id)
		if left -= len(id.Scheme) + len(id.ID); left < 0 {
			break
		}
		k.Identities = append(k.Identities, znode.ID{Scheme: strings.Clone(id.Scheme), ID: strings.Clone(id.ID)})
	}
	return k
}

// disconnection is the end of a session's connection.
type disconnection struct {
	client  Client
	at      time.Time
	reason  string
	watches int
}

// OpenConnection is the connection that a session had when it expired.
type OpenConnection struct {
	Client   Client
	LastByte time.Time // about when something last came on it; zero: not known
	Watches  int
}

// NewExpirations returns the Expirations of a server.
func NewExpirations(self state.ServerID, logger *slog.Logger) *Expirations {
	return &Expirations{
		self: self, logger: logger, expired: journal.New[ExpiredSession](keepExpired),
		disconnected: map[znode.SessionID]disconnection{}, reported: map[state.ServerID]time.Time{},
	}
}

// Reported notes that a server has reported to this leader which clients it has heard.
func (e *Expirations) Reported(by state.ServerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reported[by] = time.Now()
}

// Disconnected notes the end of a session's connection, which had so many watches.
func (e *Expirations) Disconnected(id znode.SessionID, client Client, reason string, watches int) {
	client = client.kept()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.disconnected) >= maxDisconnected { // full of sessions whose end a snapshot held, above all
		clear(e.disconnected)
	}
	e.disconnected[id] = disconnection{client, time.Now(), reason, watches}
}

// Reconnected forgets the end of a session's connection: it has another one, here or at another server, or was closed.
func (e *Expirations) Reconnected(id znode.SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.disconnected, id)
}

// Paused notes that this server has not run for so long, until now.
func (e *Expirations) Paused(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pausedAt, e.paused = time.Now(), d
}

// Proposed notes that this leader proposes the expiry of sessions.
func (e *Expirations) Proposed(silent []session.Silent) {
	if len(silent) > maxExpiredLines { // a thousand may, at once
		e.logger.Info("sessions expire", "count", len(silent))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proposed = map[znode.SessionID]session.Silent{} // those before have expired, or their term is over
	for _, s := range silent {
		e.proposed[s.ID] = s
	}
}

// Add remembers a session that has expired now, with these ephemerals; open is its connection here, nil if it has none.
func (e *Expirations) Add(s *session.Session, ephemerals []string, open *OpenConnection) {
	x := ExpiredSession{
		At: time.Now(), Session: s.ID, Timeout: s.Timeout, Server: state.ServerID(s.Owner), HeardBy: state.NoServer,
		Ephemerals: len(ephemerals), Paths: firstPaths(ephemerals),
	}
	if open != nil {
		x.Client, x.Connected, x.LastByte, x.Watches = open.Client.kept(), true, open.LastByte, open.Watches
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.proposed[x.Session]; ok {
		delete(e.proposed, x.Session)
		x.Led, x.Heard = true, p.Heard
		if p.By != session.NotHeard {
			x.HeardBy = state.ServerID(p.By)
		}
		if last := e.reported[x.Server]; x.Server != e.self && !last.IsZero() {
			x.ServerSilent = x.At.Sub(last)
		}
	}
	if d, ok := e.disconnected[x.Session]; ok {
		delete(e.disconnected, x.Session)
		x.Client, x.Ended, x.EndReason, x.Watches = d.client, d.at, d.reason, d.watches
	}
	if x.At.Sub(e.pausedAt) < 2*x.Timeout {
		x.Paused = e.paused
	}
	x.Cause = x.cause(e.self)
	x.ID = e.expired.Last() + 1
	e.expired.Add(x)
}

// firstPaths returns copies of the first paths, as far as they are remembered.
func firstPaths(paths []string) (first []string) {
	left := maxExpiredPathBytes
	for _, path := range paths[:min(len(paths), maxExpiredPaths)] {
		if left -= len(path); left < 0 {
			break
		}
		first = append(first, strings.Clone(path))
	}
	return first
}

// cause returns the most likely cause.
func (x *ExpiredSession) cause(self state.ServerID) string {
	switch {
	case x.Led && x.ServerSilent > x.Timeout/2:
		return CauseServer
	case x.Server != self:
		return CauseElsewhere
	case !x.Ended.IsZero():
		return CauseDisconnected
	case x.Paused > x.Timeout/2:
		return CausePaused
	}
	return CauseSilent
}

// Count returns how many sessions have expired since the start, whichever server carried them.
func (e *Expirations) Count() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return int64(e.expired.Last())
}

// Sessions returns at most limit of the expired sessions with an ID below before (0: of all), the newest first.
func (e *Expirations) Sessions(before uint64, limit int) []ExpiredSession {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.expired.Page(before, limit)
}

// Report logs the sessions that have expired since the last call and that this server can explain, up to
// maxExpiredLines.
func (e *Expirations) Report() {
	e.mu.Lock()
	fresh := e.expired.Fresh()
	e.mu.Unlock()
	lines := 0
	for _, x := range fresh {
		if x.Cause == CauseElsewhere && !x.Led {
			continue
		}
		if lines++; lines > maxExpiredLines {
			return
		}
		e.logger.Info("session expired", x.attributes()...)
	}
}

// attributes are what is known of it, for the log.
func (x *ExpiredSession) attributes() []any {
	list := []any{
		"session", x.Session, "cause", x.Cause, "server", x.Server, "timeout", x.Timeout, "ephemerals", x.Ephemerals,
	}
	if x.Led {
		list = append(list, "heard", x.At.Sub(x.Heard).Round(time.Millisecond))
		if x.HeardBy != state.NoServer {
			list = append(list, "heard_by", x.HeardBy)
		}
	}
	if x.ServerSilent > 0 {
		list = append(list, "server_heard", x.ServerSilent.Round(time.Millisecond))
	}
	if !x.Ended.IsZero() {
		list = append(list, "connection_ended", x.At.Sub(x.Ended).Round(time.Millisecond), "reason", x.EndReason)
	}
	if x.Client.Address != "" {
		list = append(list, "address", x.Client.Address)
	}
	if x.Connected {
		list = append(list, "watches", x.Watches)
	}
	if x.Paused > 0 {
		list = append(list, "paused", x.Paused)
	}
	return list
}
