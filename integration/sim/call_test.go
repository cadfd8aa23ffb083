package sim

import (
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// call is one request on its way. It implements server.Op.
type call struct {
	x    *connection
	op   *check.Op
	done chan struct{}
	look func(*server.View) // not nil: called with what a read sees

	// Set before done is closed.
	session session.Session
}

// call begins an operation.
func (x *connection) call(op check.Op) *call {
	c := x.c
	x.sent++
	op.Client, op.Conn, op.Server, op.Session, op.Sent = c.id, x.number, x.life.i, c.session, x.sent
	if op.Call == 0 {
		op.Call = c.w.now()
	}
	k := &call{x: x, op: &op, done: make(chan struct{})}
	c.w.record.call(k.op)
	return k
}

// send sends a request for an operation. False means that the connection is of no further use.
func (x *connection) send(op check.Op, cmd *state.Command) (*call, bool) {
	k := x.call(op)
	return k, x.ask(k, cmd)
}

// ask sends an operation that has begun; without a command, it is a read.
func (x *connection) ask(k *call, cmd *state.Command) bool {
	if !x.reach() {
		return false
	}
	x.sc.Touch()
	var err error
	switch {
	case cmd == nil:
		err = x.sc.Read(k)
	case k.op.Kind == check.OpenSession:
		err = x.sc.OpenSession(cmd.Timeout, k)
	case k.op.Kind == check.AttachSession:
		err = x.sc.AttachSession(cmd.Session, cmd.Password, cmd.Timeout, k)
	default:
		cmd.Identities = x.sc.Identities()
		err = x.sc.Write(cmd, k)
	}
	return err == nil
}

// reach waits until the server hears, and reports false if it does not within the client's patience.
func (x *connection) reach() bool {
	limit := time.NewTimer(x.c.patience())
	defer limit.Stop()
	for {
		shut := x.life.freeze.closed()
		if shut == nil {
			x.mu.Lock()
			deaf := x.deafLocked()
			x.mu.Unlock()
			return !deaf && !x.c.w.clientsCut[x.life.i].Load()
		}
		select {
		case <-shut:
		case <-limit.C:
			return false
		case <-x.disconnected:
			return false
		}
	}
}

// await waits for the answers of calls, all by the same moment.
func (x *connection) await(calls ...*call) bool {
	limit := time.NewTimer(x.c.patience())
	defer limit.Stop()
	for _, k := range calls {
		select {
		case <-k.done:
		case <-x.disconnected:
			select {
			case <-k.done: // it came before the end
			default:
				return false
			}
		case <-limit.C:
			return false
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.c.seen = max(x.c.seen, x.seen)
	return true
}

// answer notes an answer; fill writes it into the operation.
func (k *call) answer(zxid znode.Zxid, code znode.Error, fill func(o *check.Op)) {
	x := k.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.deafLocked() {
		return
	}
	x.arrived++
	x.seen = max(x.seen, zxid)
	o := k.op
	o.Return, o.Arrival, o.Zxid, o.Code, o.Outcome = x.c.w.now(), x.arrived, zxid, code, check.OK
	if code != znode.OK {
		o.Outcome = check.Failed
	}
	fill(o)
	x.leftLocked(o)
	if o.Session != 0 && code != znode.ErrSessionExpired && code != znode.ErrSessionMoved {
		x.c.w.truth.told(o.Session)
	}
	close(k.done)
}

// Read implements server.Op.
func (k *call) Read(v *server.View) {
	o := k.op
	var data []byte
	var stat znode.Stat
	var names []string
	code, ids := znode.OK, k.x.sc.Identities()
	if k.look != nil {
		k.look(v)
	}
	switch o.Kind {
	case check.Get:
		data, stat, code = v.Tree().Get(o.Path, ids)
	case check.Exists:
		stat, code = v.Tree().Exists(o.Path, ids)
	case check.Children:
		names, stat, code = v.Tree().Children(o.Path, ids)
		names = append([]string(nil), names...)
	}
	if mode := watchModes[o.Watch]; mode != 0 && (code == znode.OK || o.Kind == check.Exists) {
		if err := v.Watches().Add(k.x.sc.Watcher(), o.Path, mode); err != nil {
			k.x.end(err.Error())
			return
		}
	}
	k.answer(v.Zxid(), code, func(o *check.Op) { o.Data, o.Stat, o.Names = string(data), stat, names })
}

var watchModes = map[check.WatchMode]watch.Mode{
	check.DataWatch: watch.Data, check.ChildWatch: watch.Child,
	check.Persistent: watch.Persistent, check.Recursive: watch.Recursive,
}

// Weight implements server.Op.
func (k *call) Weight(*server.View) int { return 0 }

// Done implements server.Op.
func (k *call) Done(v *server.View, r *state.Result) {
	code, zxid := r.Code, r.Zxid
	for i := range r.Multi {
		if r.Multi[i].Code != znode.OK {
			code = r.Multi[i].Code
			break
		}
	}
	if k.op.Kind == check.OpenSession || k.op.Kind == check.AttachSession {
		zxid = v.Zxid()
	}
	k.answer(zxid, code, func(o *check.Op) {
		o.Stat, o.Held = r.Stat, r.Then
		parts := o.Ops
		if r.Op == state.OpBranch && !r.Then {
			parts = o.Else
		}
		for i := range r.Multi {
			if read := r.Multi[i].Read; read != nil {
				parts[i].Outcome, parts[i].Data = check.OK, string(read.Data)
			}
		}
		if o.Kind == check.Create {
			o.Created = strings.Clone(r.Path)
		}
		if r.Session != nil && code == znode.OK {
			k.session, o.Session = *r.Session, r.Session.ID
		}
	})
	if k.op.Kind == check.CloseSession {
		k.x.Disconnect(server.ReasonClosed)
	}
	if r.Code == znode.ErrSessionMoved {
		k.x.Disconnect(server.ReasonMoved)
	}
}
