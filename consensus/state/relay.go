package state

import (
	"fmt"
	"math"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// While a mirror is loaded, a client's command is not carried out but relayed: it is kept with a number, which its
// Result has, until the leader has sent it to the source, and the answer has come through the log: the transaction with
// the command's session and number, or a MirrorAnswer. Observer.Relayed delivers it.
//
// The leader sends each relay at most once: those of its own term alone, and only those after a MirrorLost of that
// term, which has dropped all that a former leader, or a former connection, may have sent. What was dropped may have
// happened or not. The session's later commands are refused until its client attaches again, because the source could
// carry them out without the one that was dropped.

// The bounds of the relays that are outstanding. Beyond them commands are dropped at once, and so are all of them while
// the mirror has a fault.
const (
	MaxRelays     = 20_000
	MaxRelayBytes = 64 << 20
)

// relay is a command that waits for the source's answer. It is immutable.
type relay struct {
	number  uint64
	term    uint64 // of its entry: no other leader may send it
	origin  Origin
	session znode.SessionID
	op      Op
	command []byte
}

// relays are those that are outstanding.
type relays struct {
	last  uint64 // number of the newest
	first uint64 // none before it is outstanding
	open  uint64 // the term of the last MirrorLost
	bytes int    // of the commands
	all   map[uint64]*relay
}

// cxids of relays have this bit. Clients count from 1 in each connection, and so never come there.
const relayedCxid = 1 << 30

// RelayCxid is the cxid with which the relay of a number is sent, and answered.
func RelayCxid(number uint64) int32 { return int32(number&(relayedCxid-1) | relayedCxid) }

// relayable reports whether ZooKeeper has the command, and a mirror passes it on.
func (c *Command) relayable() bool {
	if c.Flags&FlagKeyed != 0 || c.Session == 0 || c.Mzxid != 0 {
		return false
	}
	switch c.Op {
	case OpCreate, OpDelete, OpSetData, OpSetACL, OpSync, OpCreateSession, OpCloseSession, OpAttach:
		return true
	case OpMulti:
		for i := range c.Ops {
			if c.Ops[i].Op == OpCheckAbsent || c.Ops[i].Mzxid != 0 {
				return false
			}
		}
		return true
	}
	return false
}

// admitRelay returns why a command is not relayed, apart from what admit checks of every command.
func (m *Machine) admitRelay(c *Command) znode.Error {
	if !m.mirror.Loaded || !c.relayable() {
		return znode.ErrNotReadOnly
	}
	switch c.Op {
	case OpCreateSession:
		if m.sessions.Get(c.Session) != nil {
			return znode.ErrNodeExists
		}
		return checkRelayed(c.Session, c.Timeout.Milliseconds())
	case OpAttach:
		// The session may be so new that its transaction has not come yet.
		code := checkRelayed(c.Session, c.Timeout.Milliseconds())
		if code != znode.OK || c.Password != session.CompatiblePassword(c.Session) {
			return znode.ErrSessionExpired
		}
	}
	return znode.OK
}

// checkRelayed refuses a session that ZooKeeper must not see.
func checkRelayed(id znode.SessionID, millis int64) znode.Error {
	if !session.Possible(id) || millis > math.MaxInt32 {
		return znode.ErrBadArguments
	}
	return znode.OK
}

// relay keeps an admitted command, and puts its number into the result.
func (m *Machine) relay(c *Command, from Origin, term uint64, obs Observer) {
	x, r := &m.mirror.relays, &m.result
	b := c.Append(nil)
	if m.mirror.Fault != "" || len(x.all) >= MaxRelays || x.bytes+len(b) > MaxRelayBytes {
		r.Code = znode.ErrConnectionLoss
		return
	}
	x.last++
	r.Relay = x.last
	x.add(&relay{number: x.last, term: term, origin: from, session: c.Session, op: c.Op, command: b})
	obs.Relayed(x.last, nil)
}

func (x *relays) add(r *relay) {
	if len(x.all) == 0 {
		x.all, x.first = map[uint64]*relay{}, r.number
	}
	x.all[r.number] = r
	x.bytes += len(r.command)
}

func (x *relays) remove(r *relay) {
	delete(x.all, r.number)
	x.bytes -= len(r.command)
	for len(x.all) > 0 && x.all[x.first] == nil {
		x.first++
	}
}

// each calls visit with the relays after a number, in their order, until it returns false.
func (x *relays) each(after uint64, visit func(*relay) bool) {
	for n := max(after+1, x.first); n <= x.last && len(x.all) > 0; n++ {
		if r := x.all[n]; r != nil && !visit(r) {
			return
		}
	}
}

// Relays calls visit with the relays after a number that the leader of a term may send, in their order, until it
// returns false. The Command shares the relay's bytes, which never change.
func (m *Machine) Relays(term, after uint64, visit func(number uint64, c *Command) bool) {
	if m.mirror == nil || m.mirror.relays.open != term {
		return
	}
	m.mirror.relays.each(after, func(r *relay) bool {
		return r.term != term || visit(r.number, r.decoded())
	})
}

func (r *relay) decoded() *Command {
	c := new(Command)
	c.decode(&reader{b: r.command})
	return c
}

// of returns the relay that a transaction answers; nil: none.
func (x *relays) of(t *replica.Txn) *relay {
	if len(x.all) == 0 || t.Cxid&relayedCxid == 0 || t.Cxid < 0 {
		return nil
	}
	number := x.last - (x.last-uint64(t.Cxid))&(relayedCxid-1)
	if r := x.all[number]; r != nil && r.session == t.Session {
		return r
	}
	return nil
}

// result makes room for a relay's answer.
func (x *mirror) result(r *relay) *Result {
	x.answer = Result{Op: r.op, Multi: x.answer.Multi[:0]}
	return &x.answer
}

// watchRelay has the operations of the transaction that answers r noted as they are applied.
func (m *Machine) watchRelay(r *relay) {
	x := m.mirror
	out := x.result(r)
	var ops []Command
	if r.op == OpMulti {
		ops = r.decoded().Ops
	}
	x.replica.Each = func(c *replica.Change) {
		var one OpResult
		if c.Op.Creates() {
			one.Path = c.Path
		}
		if c.Op.Creates() || c.Op == replica.OpSetData || c.Op == replica.OpSetACL {
			one.Stat, _ = m.tree.Exists(c.Path, super)
		}
		if r.op != OpMulti {
			out.Path, out.Stat = one.Path, one.Stat
			return
		}
		if n := len(out.Multi); n < len(ops) {
			one.Op, one.Kind = ops[n].Op, ops[n].Kind
		}
		out.Multi = append(out.Multi, one)
	}
}

// answerRelay reports the answer to r, which a transaction is.
func (m *Machine) answerRelay(r *relay, t *replica.Txn, obs Observer) {
	x := m.mirror
	x.replica.Each = nil
	out := &x.answer
	switch {
	case t.Op == replica.OpError:
		out.Code, out.Path, out.Stat, out.Multi = t.Code, "", znode.Stat{}, out.Multi[:0]
	case t.Op == replica.OpMulti && t.Failed():
		out.Multi = out.Multi[:0]
		ops := r.decoded().Ops
		for i := range ops {
			one := OpResult{Op: ops[i].Op, Kind: ops[i].Kind}
			if i < len(t.Multi) && t.Multi[i].Op == replica.OpError {
				one.Code = t.Multi[i].Code
			}
			out.Multi = append(out.Multi, one)
		}
	case t.Op == replica.OpCreateSession:
		out.Session = m.sessions.Get(t.Session)
	}
	m.finishRelay(r, obs)
}

// finishRelay reports the answer to r.
func (m *Machine) finishRelay(r *relay, obs Observer) {
	m.mirror.relays.remove(r)
	m.mirror.answer.Zxid = m.zxid
	obs.Relayed(r.number, &m.mirror.answer)
}

// AppendAnswer adds the answer to a relay to the Data of a MirrorAnswer.
func AppendAnswer(b []byte, number uint64, code znode.Error) []byte {
	return appendInt(appendUint(b, number), int64(code))
}

// answerRelays carries out a MirrorAnswer.
func (m *Machine) answerRelays(c *Command, obs Observer) znode.Error {
	for in := (reader{b: c.Data}); in.off < len(in.b); {
		number, code := in.uint(), znode.Error(in.int())
		if in.err != nil {
			return znode.ErrMarshalling
		}
		r := m.mirror.relays.all[number]
		if r == nil {
			continue // it was dropped
		}
		out := m.mirror.result(r)
		out.Code = code
		if r.op == OpAttach && code == znode.OK {
			m.attachRelayed(r, out, obs)
		}
		m.finishRelay(r, obs)
	}
	return znode.OK
}

// attachRelayed moves a session to the server to which its client has connected.
func (m *Machine) attachRelayed(r *relay, out *Result, obs Observer) {
	c := r.decoded()
	former, ok := m.sessions.Attach(c.Session, c.Password, c.Timeout, uint64(r.origin.Server))
	if !ok {
		out.Code = znode.ErrSessionExpired
		return
	}
	out.Session = m.sessions.Get(c.Session)
	obs.SessionAttached(out.Session, ServerID(former))
}

// loseRelays drops all relays. Their sessions belong to no server until their clients attach again: later commands of
// theirs are in the log already, and must not be carried out without these.
func (m *Machine) loseRelays(obs Observer) {
	x := m.mirror
	x.relays.each(0, func(r *relay) bool {
		if s := m.sessions.Get(r.session); s != nil && s.Owner == uint64(r.origin.Server) {
			s.Owner = uint64(NoServer)
		}
		x.result(r).Code = znode.ErrConnectionLoss
		m.finishRelay(r, obs)
		return true
	})
}

// minRelayBytes is the least size of a relay in a snapshot.
const minRelayBytes = 5

func (x *relays) append(b []byte) []byte {
	b = appendUint(appendUint(appendUint(b, x.last), x.open), uint64(len(x.all)))
	x.each(0, func(r *relay) bool {
		b = appendUint(appendUint(b, r.number), r.term)
		b = appendUint(appendUint(b, uint64(r.origin.Server)), r.origin.Incarnation)
		b = append(appendUint(b, uint64(len(r.command))), r.command...)
		return true
	})
	return b
}

func (x *relays) read(in *reader) {
	x.last, x.open = in.uint(), in.uint()
	before := uint64(0)
	for n := in.count(minRelayBytes); n > 0; n-- {
		r := &relay{number: in.uint(), term: in.uint(), origin: Origin{ServerID(in.uint()), in.uint()}}
		r.command = append([]byte(nil), in.take(in.count(1))...)
		if in.err != nil {
			return
		}
		var c Command
		body := reader{b: r.command}
		if c.decode(&body); body.err != nil || r.number <= before || r.number > x.last {
			in.fail(fmt.Errorf("relay %d of %d, after %d, is impossible", r.number, x.last, before))
			return
		}
		before = r.number
		r.session, r.op = c.Session, c.Op
		x.add(r)
	}
}
