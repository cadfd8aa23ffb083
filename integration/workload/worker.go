package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// workerPause is between two bursts of a worker. It bounds the work of the checkers, and
	// leaves the processor to the servers.
	workerPause = 60 * time.Millisecond
	maxBurst    = 4
	// slotLength is for how long workers meet at the same registers. It is short, so that each
	// register has few requests without an answer: each of these doubles the search for a
	// linear order.
	slotLength = 3 * time.Second
	registers  = 4
	dialAtMost = 700 * time.Millisecond
	// answerAtMost is how long a worker waits for an answer before it breaks its
	// connection, as clients do.
	answerAtMost = 3 * time.Second
)

// worker is a client of the ZooKeeper port.
type worker struct {
	w       *Window
	id      int
	rng     *rand.Rand
	timeout time.Duration
	values  int // used up

	session cluster.Session
	conn    *cluster.Conn
	connID  int
	server  int
	sent    int
	asked   []*asked
	attach  *check.Op // to be completed by the first answer
	mine    []string  // ephemerals
	seen    map[string]znode.Version
	// left are the sessions that it has walked away from.
	left []cluster.Session
}

// asked is a request under way.
type asked struct {
	op   check.Op
	call *cluster.Call
}

func (k *worker) run() {
	for !k.w.Stopping() {
		switch {
		case k.conn == nil:
			k.connect()
		case k.rng.IntN(150) == 0:
			k.harvest() // move
		case k.rng.IntN(250) == 0:
			k.harvest() // die
			k.left = append(k.left, k.session)
			k.session = cluster.Session{LastZxid: k.session.LastZxid}
			k.mine = nil
		case k.rng.IntN(250) == 0:
			k.close()
		default:
			k.burst()
		}
		k.w.Pause(workerPause)
	}
	if k.conn != nil {
		k.harvest()
	}
	if k.session.ID != 0 {
		k.left = append(k.left, k.session)
	}
}

// connect opens a session, or resumes it.
func (k *worker) connect() {
	s := k.w.e.Servers()[k.rng.IntN(len(k.w.e.Servers()))]
	op := check.Op{Client: k.id, Conn: k.w.rec.connID(), Server: s.ID, Kind: check.OpenSession,
		Call: k.w.rec.since(time.Now()), Outcome: check.OK}
	if k.session.ID != 0 {
		op.Kind = check.AttachSession
	}
	c, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{Timeout: k.timeout,
		Session: k.session, HandshakeTimeout: dialAtMost})
	now := k.w.rec.since(time.Now())
	switch {
	case errors.Is(err, cluster.ErrExpired) && k.session.ID != 0:
		k.w.rec.ended(k.session.ID, check.Expired, now, 0)
		k.session = cluster.Session{LastZxid: k.session.LastZxid}
		k.mine = nil
		return
	case err != nil:
		return
	}
	if k.session.ID == 0 {
		k.w.rec.opened(c.Session.ID, k.id,
			time.Duration(c.Response.TimeoutMillis)*time.Millisecond)
	}
	zxid := k.session.LastZxid
	k.session = c.State()
	k.session.LastZxid = max(k.session.LastZxid, zxid)
	k.conn, k.connID, k.server, k.sent, k.asked = c, op.Conn, s.ID, 0, nil
	op.Return, op.Session = now, k.session.ID
	k.attach = &op
	first := k.ask(wire.OpSync, &wire.SyncRequest{Path: "/"}, check.Op{Kind: check.Sync, Path: "/"})
	batch := []*asked{first}
	switch k.rng.IntN(3) {
	case 0:
		batch = append(batch, k.addWatch(wire.AddWatchPersistentRecursive, check.Recursive, k.w.root+"/reg"))
	case 1:
		batch = append(batch, k.addWatch(wire.AddWatchPersistent, check.Persistent, k.w.root+"/eph"))
	}
	batch = append(batch, k.ephemeral())
	k.wait(batch)
}

func (k *worker) addWatch(mode wire.AddWatchMode, as check.WatchMode, path string) *asked {
	return k.ask(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: mode},
		check.Op{Kind: check.AddWatch, Path: path, Watch: as})
}

// ask sends a request.
func (k *worker) ask(code wire.OpCode, body wire.Request, op check.Op) *asked {
	k.sent++
	op.Client, op.Conn, op.Server, op.Session = k.id, k.connID, k.server, k.session.ID
	op.Sent = k.sent
	a := &asked{op: op, call: k.conn.Send(code, body)}
	if a.op.Call == 0 {
		a.op.Call = k.w.rec.since(a.call.SentAt)
	}
	k.asked = append(k.asked, a)
	return a
}

// wait waits for the answers; a connection without one is broken.
func (k *worker) wait(batch []*asked) {
	timer := time.NewTimer(answerAtMost)
	defer timer.Stop()
	for _, a := range batch {
		select {
		case <-a.call.Done:
		case <-timer.C:
			k.harvest()
			return
		}
		if a.call.Err != nil {
			k.harvest()
			return
		}
		k.note(a)
	}
}

// note learns from an answer what later requests need.
func (k *worker) note(a *asked) {
	if k.attach != nil {
		k.attach.Zxid = a.call.Reply.Zxid
		k.w.rec.add(*k.attach)
		k.attach = nil
	}
	if a.call.Reply.Err != znode.OK {
		return
	}
	switch body := a.call.Body.(type) {
	case *wire.GetDataResponse:
		k.seen[a.op.Path] = body.Stat.Version
	case *wire.SetDataResponse:
		k.seen[a.op.Path] = body.Stat.Version
	case *wire.CreateResponse:
		k.seen[a.op.Path] = 0
		if a.op.Mode == znode.Ephemeral {
			k.mine = append(k.mine, a.op.Path)
		}
	}
	if a.op.Kind.Write() {
		k.w.rec.heard(k.session.ID, a.op.Call)
	}
}

// harvest breaks the connection and records the outcomes of all its requests.
func (k *worker) harvest() {
	state := k.conn.State()
	k.conn.Drop()
	state.LastZxid = max(state.LastZxid, k.conn.State().LastZxid)
	k.session = state
	k.record()
}

// close ends the session in good order, or does not know whether it has.
func (k *worker) close() {
	k.w.rec.close(k.session.ID)
	a := k.ask(wire.OpCloseSession, nil, check.Op{Kind: check.CloseSession})
	k.wait([]*asked{a})
	if k.conn != nil {
		<-k.conn.Ended()
		k.harvest()
	}
	if a.call.Err != nil || a.call.Reply.Err != znode.OK {
		return // it reconnects, if it can
	}
	k.w.rec.ended(k.session.ID, check.Closed, k.w.rec.since(a.call.AnsweredAt), a.call.Reply.Zxid)
	k.session = cluster.Session{LastZxid: k.session.LastZxid}
	k.mine = nil
}

// record is called when the connection has ended.
func (k *worker) record() {
	arrival := map[*cluster.Call]int{}
	for i, item := range k.conn.Items() {
		if item.Call != nil {
			arrival[item.Call] = i + 1
			continue
		}
		k.w.rec.event(check.Event{Client: k.id, Conn: k.connID, At: k.w.rec.since(item.At),
			Arrival: i + 1, Type: item.Event.Type, Path: item.Event.Path, Zxid: item.Zxid})
	}
	for _, a := range k.asked {
		a.op.Outcome = check.Unknown
		a.op.Return = k.w.rec.since(time.Now())
		if a.call.Err == nil {
			answered(&a.op, a.call)
			a.op.Return = k.w.rec.since(a.call.AnsweredAt)
			a.op.Arrival = arrival[a.call]
		}
		k.w.rec.add(a.op)
	}
	k.conn, k.asked, k.attach = nil, nil, nil
}

// answered fills in the fields that the answer has.
func answered(op *check.Op, call *cluster.Call) {
	op.Outcome, op.Code, op.Zxid = check.OK, call.Reply.Err, call.Reply.Zxid
	if call.Reply.Err != znode.OK {
		op.Outcome = check.Failed
		return
	}
	switch body := call.Body.(type) {
	case *wire.CreateResponse:
		op.Created = body.Path
	case *wire.GetDataResponse:
		op.Data, op.Stat = string(body.Data), body.Stat
	case *wire.ExistsResponse:
		op.Stat = body.Stat
	case *wire.SetDataResponse:
		op.Stat = body.Stat
	case *wire.GetChildrenResponse:
		op.Names = body.Children
	case *wire.MultiResponse:
		for _, x := range body.Results {
			if x.Err != znode.OK { // a refused multi is answered OK, with errors inside
				op.Outcome = check.Failed
				if x.Err != znode.ErrRuntimeInconsistency {
					op.Code = x.Err
				}
			}
		}
	}
}

// value is data that no other client writes.
func (k *worker) value() string {
	k.values++
	return fmt.Sprintf("c%d-%d", k.id, k.values)
}

// lockTimeout is the session timeout of the clients that take the lock.
const lockTimeout = 4 * time.Second

// lockWorker takes a lock with this project's client and recipes.
type lockWorker struct {
	w  *Window
	id int
}

func (k *lockWorker) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-k.w.stop
		cancel()
	}()
	c, err := client.Connect(ctx, k.w.e.ConnectString(), client.WithSessionTimeout(lockTimeout))
	if err != nil {
		return // the window has ended before there was a server
	}
	defer c.Close()
	m := recipes.NewMutex(c, k.w.root+"/lock")
	for ctx.Err() == nil {
		k.take(ctx, m)
		k.w.Pause(workerPause)
	}
}

func (k *lockWorker) take(ctx context.Context, m *recipes.Mutex) {
	h := check.Hold{Lock: "lock", Client: k.id, Asked: k.w.rec.since(time.Now())}
	g, err := m.Lock(ctx)
	if err != nil {
		return
	}
	h.Token, h.From = uint64(g.FencingToken()), k.w.rec.since(time.Now())
	select {
	case <-g.Done():
	case <-time.After(workerPause):
	}
	h.To = k.w.rec.since(time.Now())
	// A process that gets no processor for longer than its session lives learns too late that
	// it has lost the lock; then only the tokens show it.
	h.SessionEnded = g.Err() != nil || h.To-h.From > lockTimeout/4
	release, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	_ = g.Release(release) // an error means that it goes with the session
	k.w.rec.hold(h)
}
