package server

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// While the state is a mirror, what clients ask for is carried out by ZooKeeper: a command's first result is the number
// with which it is relayed, and its waiter stays until the outcome comes through the log (handler.Relayed). All that
// follows from a result follows from that one, so the order of a connection is as always. A reconfig is the same: the
// leader carries it out.

// Carrier brings relays to the leader of the ensemble that is mirrored, on the server that leads ours. Its methods are
// called with the view lock held, or on many goroutines, and must not block.
type Carrier interface {
	// Wake reports that there are new ones: state.Machine.Relays.
	Wake()
	// Touched reports sessions whose clients a server has heard.
	Touched(ids []znode.SessionID)
}

// The bounds of the relays of this server's connections that have no outcome yet. More clients than that wait, so that
// few servers together stay far below state.MaxRelays and state.MaxRelayBytes.
const (
	maxRelays     = 2000
	maxRelayBytes = 8 << 20
)

// Source is the ensemble that is mirrored, as a server knows it: whether it is in reach, and what waits for it.
type Source struct {
	srv     *Server
	carrier atomic.Pointer[Carrier]
	on      atomic.Bool // the state is a mirror
	// offline is when its source was lost, since Server.started; online: it was not.
	offline atomic.Int64

	waiting map[uint64]forward.Waiter // by number; used with the view lock held alone

	mu    sync.Mutex // protects the fields below
	room  *sync.Cond // on mu: count or bytes have become less, or a connection was closed
	count int
	bytes int

	opening sync.Mutex // held while own is opened; protects own
	own     atomic.Int64
}

// Values of Source.offline.
const (
	online = math.MaxInt64
	never  = math.MinInt64 / 2 // it was not in reach since a state was loaded, or is no longer followed
)

func newSource(s *Server) *Source {
	r := &Source{srv: s, waiting: map[uint64]forward.Waiter{}}
	r.room = sync.NewCond(&r.mu)
	r.offline.Store(online)
	return r
}

// SetCarrier sets the server's Carrier. It is called at most once.
func (x *Source) SetCarrier(c Carrier) { x.carrier.Store(&c) }

// Relayed implements consensus.Handler.
func (h *handler) Relayed(number uint64, r *state.Result) {
	x := h.srv.Source
	if r == nil {
		if c := x.carrier.Load(); c != nil {
			(*c).Wake()
		}
		return
	}
	w := x.waiting[number]
	delete(x.waiting, number)
	switch {
	case w == nil: // another server's, or of an earlier run of this one
	case r.Code == znode.ErrConnectionLoss:
		w.Lost()
	default:
		w.Applied(r)
	}
}

// follows keeps the waiter of a command that was relayed, and reports whether that was so. If the command was dropped
// at once, its waiter is Lost.
func (x *Source) follows(r *state.Result, w forward.Waiter) bool {
	switch {
	case r.Relay != 0:
		x.waiting[r.Relay] = w
	case r.Code == znode.ErrConnectionLoss:
		w.Lost()
	default:
		return false
	}
	return true
}

// loseAll gives up all relays: the state was replaced.
func (x *Source) loseAll() {
	for number, w := range x.waiting {
		delete(x.waiting, number)
		w.Lost()
	}
}

// note takes in what the state mirrors after an entry; since is its time after Server.started.
func (x *Source) note(m state.Mirror, on bool, since time.Duration) {
	x.on.Store(on)
	switch {
	case !on || m.Online:
		x.offline.Store(online)
	case !m.Loaded, m.Fault != "":
		x.offline.Store(never)
	case x.offline.Load() == online:
		x.offline.Store(int64(since))
	}
}

// relayedWrite is the Waiter of a connection's command while the state is a mirror.
type relayedWrite struct {
	c    *Conn
	size int
}

// Applied implements forward.Waiter.
func (w *relayedWrite) Applied(r *state.Result) {
	if x := w.c.server.Source; !x.follows(r, w) {
		x.leave(w.size)
		w.c.Applied(r)
	}
}

// Lost implements forward.Waiter.
func (w *relayedWrite) Lost() {
	w.c.server.Source.leave(w.size)
	w.c.Lost()
}

// waiter returns the Waiter of a command of c. If it may be relayed, it waits until there is room, or c is closed.
func (x *Source) waiter(c *Conn, cmd *state.Command) forward.Waiter {
	if !x.on.Load() {
		return c
	}
	w := &relayedWrite{c, cmd.MaxSize()}
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.count > 0 && (x.count >= maxRelays || x.bytes+w.size > maxRelayBytes) && !c.ended() {
		x.room.Wait()
	}
	x.count++
	x.bytes += w.size
	return w
}

func (x *Source) leave(size int) {
	x.mu.Lock()
	x.count--
	x.bytes -= size
	x.mu.Unlock()
	x.room.Broadcast()
}

// ended reports whether nothing more is taken from c.
func (c *Conn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed || c.broken
}

// silence is for how long the ensemble that is mirrored has been out of reach: 0 while it is in reach, or nothing is
// mirrored.
func (x *Source) silence() time.Duration {
	since := x.offline.Load()
	if since == online {
		return 0
	}
	return max(time.Since(x.srv.started)-time.Duration(since), 1)
}

// TakesClients reports whether clients may connect: the server is Serving and, if it mirrors, the ensemble that carries
// out their writes is not Lost.
func (x *Source) TakesClients() bool { return x.srv.Serving() && !x.Lost() }

// Lost reports whether an ensemble is mirrored that has been out of reach for longer than clients are kept.
func (x *Source) Lost() bool {
	return x.silence() > x.srv.cfg.patience(x.srv.cfg.MinSessionTimeout)
}

// password returns that of a new session. While the state is a mirror, it is the one that ZooKeeper's servers give.
func (x *Source) password(id znode.SessionID) session.Password {
	if x.on.Load() {
		return session.CompatiblePassword(id)
	}
	return newPassword()
}

// ownTimeout is asked for the server's own session.
const ownTimeout = 30 * time.Second

// ownSession returns the server's own session: ZooKeeper carries out no write without one, and clients over HTTP may
// have none. It opens one if there is none.
func (x *Source) ownSession(ctx context.Context) (znode.SessionID, error) {
	x.opening.Lock()
	defer x.opening.Unlock()
	id, have := znode.SessionID(x.own.Load()), false
	x.srv.View(func(v *View) { have = v.machine.Sessions().Get(id) != nil })
	if have {
		return id, nil
	}
	r, err := x.srv.Do(ctx, x.srv.NewSession(ownTimeout))
	switch {
	case err != nil:
		return 0, err
	case r.Code != znode.OK:
		return 0, r.Code
	}
	x.own.Store(int64(r.Session.ID))
	return r.Session.ID, nil
}

// ErrSourceLost reports that the ensemble that is mirrored, which carries out all writes, is out of reach. Nothing was
// sent.
var ErrSourceLost = errors.New("this ensemble mirrors ZooKeeper, whose leader is out of reach")

// sessionFor gives a command of a client without a session the server's own, if it is relayed. Errors: ErrSourceLost.
func (x *Source) sessionFor(ctx context.Context, c *state.Command) (err error) {
	if !x.on.Load() {
		return nil
	}
	switch c.Op {
	case state.OpCreate, state.OpDelete, state.OpSetData, state.OpSetACL, state.OpMulti:
	case state.OpCreateSession, state.OpCloseSession:
	default:
		return nil
	}
	switch {
	case x.Lost():
		return ErrSourceLost
	case c.Session != 0, createsEphemeral(c):
		return nil // an ephemeral would be the server's; it is refused
	}
	c.Session, err = x.ownSession(ctx)
	c.Flags |= state.FlagAnyServer
	return err
}

// keepOwnSession keeps the server's own session alive.
func (x *Source) keepOwnSession() {
	if id := x.own.Load(); id != 0 && x.on.Load() {
		x.srv.Touch(znode.SessionID(id))
	}
}
