package server

import (
	"log/slog"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// leader is the clock of all sessions, which runs on the leader's server only.
type leader struct {
	tick   time.Duration
	logger *slog.Logger

	mu    sync.Mutex // protects the fields below
	term  uint64     // 0: this server does not lead
	clock *session.Clock
}

// lead starts a new clock, or, with term 0, drops it.
func (l *leader) lead(term uint64, sessions *session.Table) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = term
	if term == 0 {
		l.clock = nil
		return
	}
	l.clock = session.NewClock(l.tick)
	now := time.Now()
	sessions.Each(func(x *session.Session) { l.clock.Track(x.ID, lease(x.Timeout), now) })
}

// leads reports whether this server leads.
func (l *leader) leads() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term != 0
}

func (l *leader) track(id znode.SessionID, timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term != 0 {
		l.clock.Track(id, lease(timeout), time.Now())
	}
}

func (l *leader) remove(id znode.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term != 0 {
		l.clock.Remove(id)
	}
}

// touch gives sessions, whose clients a server has heard, a full timeout from now.
func (l *leader) touch(by state.ServerID, ids []znode.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return
	}
	now := time.Now()
	for _, id := range ids {
		l.clock.Touch(id, now, uint64(by))
	}
}

// extendDeadlines postpones the end of all sessions when the clock has stood still, as
// when the process or its machine was paused: nothing could be read from clients, and
// what they sent may still lie in the sockets. The same goes for the time that the
// application of one entry takes (busy), such as that of a large restore: then the
// requests of HTTP sessions wait for its end, here and about as long elsewhere.
func (l *leader) extendDeadlines(since time.Duration, busy bool) {
	if since <= l.tick && !busy {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return
	}
	l.clock.Delay(since)
	if !busy {
		l.logger.Warn("this server was paused; all session deadlines are extended by that time", "for", since)
	}
}

// expire takes the sessions out whose deadline has come.
func (l *leader) expire(now time.Time) (dead []session.Silent, term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return nil, 0
	}
	return l.clock.Expire(now), l.term
}

// deadlines lists when sessions would expire, in milliseconds since the epoch.
func (l *leader) deadlines() map[int64][]znode.SessionID {
	all := map[int64][]znode.SessionID{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term != 0 {
		l.clock.Deadlines(func(at time.Time, ids []znode.SessionID) { all[at.UnixMilli()] = ids })
	}
	return all
}
