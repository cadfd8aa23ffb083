package server

import (
	"cmp"
	"crypto/subtle"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// LocalSessions are the sessions that this server alone knows (docs/adr/0040). Nothing about them is in the log: their
// clients' commands go there as those of no session. This server's clock ends them, and its end ends them all. The
// first ephemeral znode makes one a session like any other.
type LocalSessions struct {
	srv *Server

	mu    sync.Mutex // protects the fields below
	all   map[znode.SessionID]*localSession
	clock *session.Tracker
	left  *sync.Cond // on mu: a session is no longer leaving
}

// localSession is a session with the connection that carries it, or did last.
type localSession struct {
	session.Session
	conn    *Conn
	leaving bool // the command that makes it one that all servers know is being proposed
}

func newLocalSessions(s *Server) *LocalSessions {
	l := &LocalSessions{
		srv: s, all: map[znode.SessionID]*localSession{}, clock: session.NewTracker(s.cfg.Tick),
	}
	l.left = sync.NewCond(&l.mu)
	l.clock.Lead(1, session.NewTable(), time.Now()) // it is this server's own in every term
	return l
}

// openLocal gives the connection a new session that only this server knows. op.Done gets the result, with
// ErrNodeExists if the id is taken and another must be tried.
func (c *Conn) openLocal(timeout time.Duration, op Op) error {
	x := c.newSession(timeout)
	return c.Read(localOpen{op, c, session.Session{
		ID: x.Session, Timeout: x.Timeout, Password: x.Password, Owner: uint64(c.server.cfg.ID),
	}})
}

// localOpen opens a local session. Its Done is that of the request.
type localOpen struct {
	Op
	c *Conn
	x session.Session
}

// Read implements Op.
func (o localOpen) Read(v *View) {
	r := state.Result{Op: state.OpCreateSession, Zxid: v.Zxid(), Session: &o.x}
	if v.machine.Sessions().Get(o.x.ID) != nil || o.c.server.Source.on.Load() {
		r.Code = znode.ErrNodeExists // while a mirror is loaded, the next try is no local one
	} else {
		o.c.server.local.add(o.c, o.x)
	}
	o.Done(v, &r)
}

// add makes c carry x, which gets a full timeout.
func (l *LocalSessions) add(c *Conn, x session.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[x.ID] = &localSession{Session: x, conn: c}
	l.clock.Track(&x, time.Now())
	l.srv.conns.bind(c, &x, true)
}

// attach makes c carry a session, with a new timeout, if there is one with this password. The connection that did
// before is ended.
func (l *LocalSessions) attach(
	c *Conn, id znode.SessionID, password session.Password, timeout time.Duration,
) (session.Session, bool) {
	l.mu.Lock()
	x := l.settled(id)
	if x == nil || subtle.ConstantTimeCompare(x.Password[:], password[:]) != 1 {
		l.mu.Unlock()
		return session.Session{}, false
	}
	x.conn, x.Timeout = c, timeout
	l.clock.Track(&x.Session, time.Now())
	former := l.srv.conns.bind(c, &x.Session, true)
	attached := x.Session
	l.mu.Unlock()
	l.srv.expired.Reconnected(id)
	if former != nil {
		former.cut(ReasonMoved)
	}
	return attached, true
}

// settled returns a session; nil if there is none. One that is leaving is waited for: the log has it then, or it stays.
// The caller holds l.mu.
func (l *LocalSessions) settled(id znode.SessionID) *localSession {
	x := l.all[id]
	for x != nil && x.leaving {
		l.left.Wait()
		x = l.all[id]
	}
	return x
}

// localAttach waits until the writes have been applied that the client sent on its former connection, and that it may
// have lost the answers to. It implements Op, with the request's own methods.
type localAttach struct {
	Op
	x session.Session
}

// Done implements Op.
func (o localAttach) Done(v *View, r *state.Result) {
	o.Op.Done(v, &state.Result{Op: state.OpAttach, Code: r.Code, Zxid: r.Zxid, Session: &o.x})
}

// leave begins the upgrade of the session that c carries. It returns nil if c does not: the session has ended, or its
// client has another connection.
func (l *LocalSessions) leave(c *Conn) *localSession {
	id, _ := c.Session()
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.all[id]
	if x == nil || x.conn != c {
		return nil
	}
	x.leaving = true
	l.clock.Remove(id)
	return x
}

// hasLeft ends leave: from now on the log is asked for the session, or, if nothing was sent, it stays.
func (l *LocalSessions) hasLeft(x *localSession, sent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.leaving = false; sent {
		delete(l.all, x.ID)
	} else if l.all[x.ID] == x {
		l.clock.Track(&x.Session, time.Now())
	}
	l.left.Broadcast()
}

// upgrade makes the local session of c one that all servers know, and waits until it is. An error is one of Write.
//
// It is no longer local once its command is sent. So it has one upgrade at most, and a client that comes back meanwhile
// asks the log for it.
func (c *Conn) upgrade() error {
	s := c.server
	x := s.local.leave(c)
	if x == nil {
		return ErrClosed
	}
	u := &upgrading{c: c}
	err := c.Write(&state.Command{
		Op: state.OpCreateSession, Session: x.ID, Password: x.Password, Timeout: x.Timeout,
	}, u)
	if s.local.hasLeft(x, err == nil); err != nil {
		return err
	}
	switch code := u.wait(); {
	case code == znode.ErrConnectionLoss:
		return ErrClosed
	case code != znode.OK: // its id is another session's, or a mirror was loaded
		c.cut(ReasonExpired)
		return ErrClosed
	}
	return nil
}

// upgrading is the command of an upgrade. It implements Op.
type upgrading struct {
	c *Conn

	done bool // protected by c.mu, as is code
	code znode.Error
}

// Read implements Op; it is no read.
func (u *upgrading) Read(*View) {}

// Weight implements Op.
func (u *upgrading) Weight(*View) int { return 0 }

// Done implements Op.
func (u *upgrading) Done(_ *View, r *state.Result) {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	u.done, u.code = true, r.Code
	u.c.wakeLocked()
}

// wait returns the result; ErrConnectionLoss if it will not come.
func (u *upgrading) wait() znode.Error {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	for !u.done && !u.c.closed && !u.c.broken {
		u.c.waitLocked()
	}
	if !u.done {
		return znode.ErrConnectionLoss
	}
	return u.code
}

// createsEphemeral reports whether c needs a session that all servers know: it would own a znode. A container with the
// flag of an ephemeral, which no client sends, counts as one.
func createsEphemeral(c *state.Command) bool { return c.Mode.Ephemeral() || firstEphemeral(c.Ops) >= 0 }

// firstEphemeral is the index of the first operation that creates an ephemeral; negative: none does.
func firstEphemeral(ops []state.Command) int {
	return slices.IndexFunc(ops, func(o state.Command) bool { return o.Mode.Ephemeral() })
}

// refusedEphemeral refuses a command that creates an ephemeral, in its place among its connection's requests. It
// implements Op, with the request's own Done.
type refusedEphemeral struct {
	Op
	cmd *state.Command
}

// Read implements Op. A multi fails at its first ephemeral.
func (w refusedEphemeral) Read(v *View) {
	r := refused(w.cmd.Op, znode.ErrEphemeralOnLocal, v.Zxid())
	if w.cmd.Op == state.OpMulti {
		r.Code = znode.OK
		first := firstEphemeral(w.cmd.Ops)
		for i := range w.cmd.Ops {
			one := state.OpResult{Op: w.cmd.Ops[i].Op, Kind: w.cmd.Ops[i].Kind}
			switch {
			case i == first:
				one.Code = znode.ErrEphemeralOnLocal
			case i > first:
				one.Code = znode.ErrRuntimeInconsistency
			}
			r.Multi = append(r.Multi, one)
		}
	}
	w.Done(v, r)
}

// localClose closes a local session, in its place among its connection's requests. It implements Op, with the request's
// own Done.
type localClose struct {
	Op
	c *Conn
}

// closeLocal closes c's local session, after its earlier requests. For later ones it is one that the log does not have.
func (c *Conn) closeLocal(op Op) error {
	c.mu.Lock()
	c.local = false
	c.mu.Unlock()
	return c.Read(localClose{op, c})
}

// Read implements Op.
func (o localClose) Read(v *View) {
	o.c.server.local.close(o.c)
	o.Done(v, &state.Result{Op: state.OpCloseSession, Zxid: v.Zxid()})
}

// close ends the session that c carries.
func (l *LocalSessions) close(c *Conn) {
	id, _ := c.Session()
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.all[id]; x != nil && x.conn == c {
		delete(l.all, id)
		l.clock.Remove(id)
		l.srv.conns.unbind(c, id)
	}
}

// Close ends a session and the connection that carries it, for another than its client. It reports whether there was
// one. The caller does not look at the state meanwhile.
func (l *LocalSessions) Close(id znode.SessionID) bool {
	l.mu.Lock()
	x := l.settled(id)
	if x != nil {
		delete(l.all, id)
		l.clock.Remove(id)
	}
	l.mu.Unlock()
	if x == nil {
		return false
	}
	if c := l.srv.conns.of(id); c != nil {
		l.srv.conns.unbind(c, id)
		c.cut(ReasonClosed)
	}
	return true
}

// touch gives those of the sessions that are local a full timeout from now, and returns the others.
func (l *LocalSessions) touch(ids []znode.SessionID, now time.Time) (others []znode.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return ids
	}
	var own []znode.SessionID
	for _, id := range ids {
		if l.all[id] != nil {
			own = append(own, id)
		} else {
			others = append(others, id)
		}
	}
	l.clock.Touch(uint64(l.srv.cfg.ID), own, now)
	return others
}

// expire ends the sessions whose clients have been silent for too long.
func (l *LocalSessions) expire(now time.Time) {
	l.mu.Lock()
	silent, _ := l.clock.Expire(now)
	dead := make([]*localSession, 0, len(silent))
	for _, s := range silent {
		dead = append(dead, l.all[s.ID])
		delete(l.all, s.ID)
	}
	l.mu.Unlock()
	l.end(dead)
}

// endAll ends all sessions.
func (l *LocalSessions) endAll() {
	var all []*localSession
	l.mu.Lock()
	for id, x := range l.all {
		all = append(all, x)
		l.clock.Remove(id)
	}
	clear(l.all)
	l.mu.Unlock()
	l.end(all)
}

// end tells those that have expired.
func (l *LocalSessions) end(dead []*localSession) {
	for _, x := range dead {
		var open *insight.OpenConnection
		if c := l.srv.conns.of(x.ID); c != nil {
			open = c.open()
			l.srv.conns.unbind(c, x.ID)
			c.cut(ReasonExpired)
		}
		l.srv.expired.Add(&x.Session, nil, open)
	}
}

// Get returns a local session.
func (l *LocalSessions) Get(id znode.SessionID) (session.Session, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.all[id]; x != nil {
		return x.Session, true
	}
	return session.Session{}, false
}

// Len returns how many local sessions there are.
func (l *LocalSessions) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// All returns the local sessions by their ids.
func (l *LocalSessions) All() []session.Session {
	l.mu.Lock()
	all := make([]session.Session, 0, len(l.all))
	for _, x := range l.all {
		all = append(all, x.Session)
	}
	l.mu.Unlock()
	slices.SortFunc(all, func(a, b session.Session) int { return cmp.Compare(uint64(a.ID), uint64(b.ID)) })
	return all
}

// Deadlines returns when the local sessions expire unless their clients send something, in milliseconds since the
// epoch.
func (l *LocalSessions) Deadlines() map[int64][]znode.SessionID { return l.clock.Deadlines() }
