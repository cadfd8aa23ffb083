package server

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// maxExpired is how many expired sessions are remembered: some 250 KB and their ephemerals' paths.
	maxExpired = 1000
	// maxExpiredPaths and maxExpiredPathBytes bound the paths that are remembered of one: some 1 MB for all.
	maxExpiredPaths, maxExpiredPathBytes = 10, 1 << 10
	// maxParted bounds the sessions whose connection has ended that are remembered: some 10 MB.
	maxParted = 1 << 16
)

// Why a session has expired, as far as one server can say.
const (
	// CauseServer: the leader had not heard of the server that carried the session either. That server, its machine, or
	// the network between the two had stopped.
	CauseServer = "server"
	// CausePaused: this server, which carried the session, had stood still.
	CausePaused = "paused"
	// CauseDisconnected: its connection had ended, and its client did not come back.
	CauseDisconnected = "disconnected"
	// CauseSilent: its connection was whole, as far as this server could see, and nothing came: the client's process or
	// machine, or the network to it, had stopped. For a session without a connection: no requests came.
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

	// What the leader knows; Led says so.
	Led     bool
	Heard   time.Time      // when the leader last heard of the client, or began to wait for it
	HeardBy state.ServerID // the server that heard the client then; NoServer: none since this leader waits
	// ServerSilent is for how long the leader had not heard of Server.
	ServerSilent time.Duration

	// What Server knows.
	Connected bool      // its connection was open
	LastByte  time.Time // about when something last came on it; zero: not known
	Ended     time.Time // when its last connection ended; zero: not known
	EndReason string
	Watches   int           // of its last connection
	Paused    time.Duration // for how long this server stood still meanwhile
}

// parted is a connection that ended before its session.
type parted struct {
	at      time.Time
	reason  string
	watches int
}

// expiries remembers why sessions have expired, and what may be needed to say so.
type expiries struct {
	mu       sync.Mutex // protects the fields below; nothing else is locked under it
	items    []ExpiredSession
	last     uint64 // number of the newest
	reported uint64
	parted   map[znode.SessionID]parted
	silent   map[znode.SessionID]session.Silent // whose expiry this leader has proposed
	servers  map[state.ServerID]time.Time       // when this leader last heard of them
	pausedAt time.Time                          // the end of the last pause of this server
	paused   time.Duration
}

// heardOf notes that another server has reported to this leader.
func (e *expiries) heardOf(id state.ServerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.servers == nil {
		e.servers = map[state.ServerID]time.Time{}
	}
	e.servers[id] = time.Now()
}

// proposed notes what is known of sessions whose expiry is proposed.
func (e *expiries) proposed(all []session.Silent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.silent = map[znode.SessionID]session.Silent{} // those before are through, or their term is over
	for _, s := range all {
		e.silent[s.ID] = s
	}
}

// part notes the end of a session's connection.
func (e *expiries) part(id znode.SessionID, p parted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.parted == nil || len(e.parted) >= maxParted { // full of sessions whose end a snapshot held, above all
		e.parted = map[znode.SessionID]parted{}
	}
	e.parted[id] = p
}

// back notes that a session has a connection again, somewhere, or has ended.
func (e *expiries) back(id znode.SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.parted, id)
}

// pause notes that this server stood still until now.
func (e *expiries) pause(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pausedAt, e.paused = time.Now(), d
}

// add completes and keeps what is known of a session that has expired now. self is this server.
func (e *expiries) add(x ExpiredSession, self state.ServerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.At, x.HeardBy = time.Now(), state.NoServer
	if s, ok := e.silent[x.Session]; ok {
		delete(e.silent, x.Session)
		x.Led, x.Heard = true, s.Heard
		if s.By != session.NotHeard {
			x.HeardBy = state.ServerID(s.By)
		}
		if last := e.servers[x.Server]; x.Server != self && !last.IsZero() {
			x.ServerSilent = x.At.Sub(last)
		}
	}
	if p, ok := e.parted[x.Session]; ok {
		delete(e.parted, x.Session)
		x.Ended, x.EndReason, x.Watches = p.at, p.reason, p.watches
	}
	if x.At.Sub(e.pausedAt) < 2*x.Timeout {
		x.Paused = e.paused
	}
	x.Cause = x.cause(self)
	e.last++
	if x.ID = e.last; len(e.items) < maxExpired {
		e.items = append(e.items, x)
	} else {
		e.items[(x.ID-1)%maxExpired] = x
	}
}

// cause names what is most likely to blame.
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

// page is as ring.page in package insight.
func (e *expiries) page(before uint64, limit int) (out []ExpiredSession) {
	e.mu.Lock()
	defer e.mu.Unlock()
	newest := e.last
	if before > 0 {
		newest = min(newest, before-1)
	}
	oldest := e.last - uint64(len(e.items))
	for n := newest; n > oldest && len(out) < limit; n-- {
		out = append(out, e.items[(n-1)%maxExpired])
	}
	return out
}

// report logs those that are new since the last call and that this server knows something about, as far as they are not
// too many.
func (e *expiries) report(logger *slog.Logger) {
	e.mu.Lock()
	fresh := int(min(e.last-e.reported, maxExpired))
	e.reported = e.last
	e.mu.Unlock()
	shown := 0
	for _, x := range e.page(0, fresh) {
		if x.Cause == CauseElsewhere && !x.Led {
			continue
		}
		if shown++; shown > maxExpiredShown {
			return
		}
		logger.Info("session expired", x.attributes()...)
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
	if x.Connected {
		list = append(list, "watches", x.Watches)
	}
	if x.Paused > 0 {
		list = append(list, "paused", x.Paused)
	}
	return list
}

// ExpiredSessions returns at most so many of the sessions that have expired, with a number below before (0: all), the
// newest first.
func (s *Server) ExpiredSessions(before uint64, limit int) []ExpiredSession {
	return s.expiries.page(before, limit)
}

// noteExpired remembers a session that has expired; c is its connection here, nil: it has none.
func (h *handler) noteExpired(x *session.Session, ephemerals []string, c *Conn) {
	h.expired.Add(1)
	e := ExpiredSession{
		Session: x.ID, Timeout: x.Timeout, Server: state.ServerID(x.Owner), Ephemerals: len(ephemerals),
	}
	left := maxExpiredPathBytes
	for _, path := range ephemerals[:min(len(ephemerals), maxExpiredPaths)] {
		if left -= len(path); left < 0 {
			break
		}
		e.Paths = append(e.Paths, strings.Clone(path))
	}
	if c != nil {
		e.Connected, e.LastByte, e.Watches = true, h.srv.conns.lastHeard(c), c.watcher.Paths()
	}
	h.srv.expiries.add(e, h.srv.cfg.ID)
}
