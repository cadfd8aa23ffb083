package state

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// A mirror is a state that is a copy of a ZooKeeper ensemble's. That ensemble decides: its transactions come through
// the log as its leader sent them, with their zxids, and every machine applies them. Meanwhile the machine draws no
// zxid. What clients ask for is relayed to that ensemble (relay.go); what it does not know is refused with
// ErrNotReadOnly (docs/adr/0036).

// MirrorStep is the action of an OpMirror. The steps that only the leader sends count in the term that they name, and
// return ErrSessionMoved in another one: a leader that has been replaced must not change a state that it no longer
// knows. While nothing is mirrored, all but the first return ErrNoNode.
type MirrorStep uint8

// The steps.
const (
	// MirrorStart begins to mirror the source in Command.Data, a text that the machine only keeps.
	//
	// Codes: ErrNotEmpty if a user has znodes or sessions, ErrNodeExists if another source is mirrored, ErrBadArguments
	// unless the text has 1 to MaxMirrorSource bytes.
	MirrorStart MirrorStep = iota
	// MirrorPart brings the next part of a state that WriteMirrored has written; part 0 ends the former upload.
	// Command.Restore has the numbers, as for RestorePart, and the codes are the same.
	MirrorPart
	// MirrorLoad makes the state that has been uploaded the machine's own. Command.Restore has the numbers, as for
	// RestoreCommit.
	//
	// Codes: ErrDataInconsistency if parts are missing, ErrMarshalling if they are not such a state or another than was
	// sent. Then nothing has changed.
	MirrorLoad
	// MirrorFollow applies the transactions in Command.Data, which AppendTxn has put there. Those up to the machine's
	// zxid are skipped.
	//
	// Codes: ErrDataInconsistency if no state is loaded, or a transaction is not the next one; ErrMarshalling if one
	// cannot be decoded, or does not fit the state, which is then lost (Mirror.LostAt). Those before it count.
	MirrorFollow
	// MirrorStop ends it. Tree and sessions stay, and are the ensemble's own from then on. Any server may send it.
	// Command.Data has a Takeover if the source cannot go on.
	//
	// Codes: ErrMarshalling if the Data are none.
	MirrorStop
	// MirrorAgain has the leader load the source's state again, and counts digests from 0. The present state stays
	// until then. Any server may send it.
	MirrorAgain
	// MirrorLost reports that what was relayed before may never be answered: the connection to the source has ended, or
	// a new leader begins. See relay.
	MirrorLost
	// MirrorOnline reports that the state has all that the source had committed when the connection was made.
	MirrorOnline
	// MirrorAnswer brings answers that are no transactions, in Command.Data; see AppendAnswer.
	MirrorAnswer
	// MirrorFault reports why nothing is followed until a MirrorAgain: what an operator must decide. Command.Data has
	// the reason and the mirror (AppendFault). It counts in any term, because it stays true. The first reason stays.
	// All relays are dropped, and new ones at once.
	//
	// Codes: ErrMarshalling if the Data are none, ErrSessionMoved if the mirror was begun again.
	MirrorFault
)

const lastMirrorStep = MirrorFault

// MaxMirrorSource and MaxMirrorFault bound the texts of a source and of a fault, in bytes.
const (
	MaxMirrorSource = 4 << 10
	MaxMirrorFault  = 1 << 10
)

// Mirror describes what is mirrored.
type Mirror struct {
	Source string
	Begun  uint64     // 1, and one more with each MirrorAgain
	Zxid   znode.Zxid // of the last transaction; 0: no state is loaded
	// Loaded is whether the state is the source's as of Zxid.
	Loaded bool
	// LostAt is the transaction that did not fit the state, which must be loaded again; 0: none.
	LostAt znode.Zxid
	// Fault is why nothing is followed; empty: there is none.
	Fault  string
	Relays int // that have no answer yet; see Machine.Relays
	// Online is whether the leader is connected to the source, and has been told all that was committed before.
	Online bool
	Term   uint64 // of the last MirrorLost; 0: there was none
	Loads  uint64 // how often a state was loaded
	Time   int64  // of the last transaction followed, by the source's clock, milliseconds since the epoch; 0: none

	// The digests of znodes that transactions brought (ZooKeeper 3.6), and those that were not the tree's. A difference
	// counts if it stays: a source's digests are wrong for a while after certain writes to the root.
	Compared, Differing           uint64
	FirstDiffering, LastDiffering znode.Zxid
	DiffersSince                  znode.Zxid // the first after the last digest that was equal; 0: the last one was

	Taken Takeover // how the last mirror has ended, while there is none
}

// mirror is a Mirror with what machines do not share.
type mirror struct {
	Mirror
	replica *replica.Replica // of tree and sessions; nil: the next MirrorFollow makes it
	relays  relays           // replicated
	answer  Result           // scratch: of a relay
}

// Mirror returns what is mirrored; false, with nothing but Taken, if nothing is.
func (m *Machine) Mirror() (Mirror, bool) {
	if m.mirror == nil {
		return Mirror{Taken: m.takeover}, false
	}
	x := m.mirror.Mirror
	x.Term, x.Relays = m.mirror.relays.open, len(m.mirror.relays.all)
	if x.Loaded {
		x.Zxid = m.zxid
	}
	return x, true
}

// ZooKeeperDigest is ZooKeeper's digest of the znodes, which takes a walk over all of them unless a
// mirror follows.
func (m *Machine) ZooKeeperDigest() uint64 {
	if m.mirror != nil && m.mirror.replica != nil {
		return m.mirror.replica.Digest()
	}
	return replica.New(m.tree, m.sessions, m.zxid).Digest()
}

// AppendTxn adds a transaction, as the source's leader sent it (replica.ParseTxn), to the Data of a MirrorFollow.
func AppendTxn(b, txn []byte) []byte { return append(appendUint(b, uint64(len(txn))), txn...) }

// carries reports whether a mirror relays the command, or refuses it: all but those that change neither znodes of
// clients nor sessions. A client's sync is the source's.
func (x *mirror) carries(c *Command) bool {
	switch c.Op {
	case OpDigest, OpLevel, OpMember, OpMirror, OpReconfig, OpPurge:
		return false
	case OpSync:
		return c.Session != 0
	}
	return true
}

// applyMirror carries out a step.
func (m *Machine) applyMirror(c *Command, from ServerID, term uint64, timeMillis int64, obs Observer) {
	r := &m.result
	byLeader := c.Mirror != MirrorStart && c.Mirror != MirrorStop && c.Mirror != MirrorAgain && c.Mirror != MirrorFault
	switch {
	case m.mirror == nil && c.Mirror != MirrorStart:
		r.Code = znode.ErrNoNode
		return
	case byLeader && c.Term != term:
		r.Code = znode.ErrSessionMoved
		return
	}
	if m.mirror != nil {
		m.begin(term, timeMillis)
	}
	switch c.Mirror {
	case MirrorStart:
		r.Code = m.startMirror(string(c.Data))
	case MirrorPart:
		r.Code = m.receivePart(c, from, timeMillis)
	case MirrorLoad:
		r.Code = m.loadMirror(c, obs)
	case MirrorFollow:
		r.Code = m.follow(c, obs)
	case MirrorStop:
		r.Code = m.stopMirror(c, term, timeMillis, obs)
	case MirrorAgain:
		x := m.mirror
		x.Mirror, x.replica = Mirror{Source: x.Source, Begun: x.Begun + 1, Loads: x.Loads, Time: x.Time}, nil
	case MirrorLost:
		m.mirror.Online, m.mirror.relays.open = false, term
		m.loseRelays(obs)
	case MirrorOnline:
		m.mirror.Online = m.mirror.Loaded && m.mirror.Fault == ""
	case MirrorAnswer:
		r.Code = m.answerRelays(c, obs)
	case MirrorFault:
		r.Code = m.noteFault(c, obs)
	}
	r.Zxid = m.zxid
}

func (m *Machine) startMirror(source string) znode.Error {
	switch {
	case source == "" || len(source) > MaxMirrorSource:
		return znode.ErrBadArguments
	case m.mirror != nil && m.mirror.Source == source:
		return znode.OK // sent again
	case m.mirror != nil:
		return znode.ErrNodeExists
	case m.tree.Size().Znodes > systemZnodes || m.sessions.Len() > 0:
		return znode.ErrNotEmpty
	}
	m.mirror, m.takeover = &mirror{Mirror: Mirror{Source: source, Begun: 1}}, Takeover{}
	m.upload = nil // of a backup, which could not be restored
	return znode.OK
}

// systemZnodes is how many znodes a new tree has. A user may have set quotas, which are more.
const systemZnodes = 4

func (m *Machine) loadMirror(c *Command, obs Observer) znode.Error {
	u := m.upload
	if u == nil || u.id != c.Restore.Upload || uint64(len(u.parts)) != c.Restore.Part {
		return znode.ErrDataInconsistency
	}
	d := m.prepared
	m.upload, m.prepared = nil, decoded{}
	if d.from != u || d.parts != c.Restore.Part || d.sum != c.Restore.Sum { // as if parts came in the same entry
		d = u.decode(c.Restore.Sum)
	}
	r := d.state
	if r == nil {
		return znode.ErrMarshalling
	}
	x := &m.txn
	x.Zxid = r.Zxid
	r.Sessions.Each(func(s *session.Session) {
		s.Owner = uint64(NoServer)
		if have := m.sessions.Get(s.ID); have != nil { // a client of ours goes on
			s.Owner, s.Timeout = have.Owner, have.Timeout
		}
	})
	ours, _, _ := m.tree.Get(znode.ConfigPath, super) // the list of this ensemble's members
	r.Tree.SetConfig(x, ours)
	r.Recount(x)
	x.Reset()
	backup.Replace(x, m.tree, r.Tree)
	former := m.sessions
	m.tree, m.sessions, m.zxid = r.Tree, r.Sessions, r.Zxid
	m.mirror.replica = r
	m.mirror.Loaded, m.mirror.LostAt, m.mirror.DiffersSince = true, 0, 0
	m.mirror.Loads++

	m.reportEvents(obs)
	for _, s := range former.ByID() {
		if m.sessions.Get(s.ID) == nil {
			obs.SessionClosed(s, nil, false)
		}
	}
	for _, s := range m.sessions.ByID() {
		if former.Get(s.ID) == nil {
			obs.SessionOpened(s)
		}
	}
	return znode.OK
}

// follow applies transactions until one cannot be.
func (m *Machine) follow(c *Command, obs Observer) znode.Error {
	x := m.mirror
	if !x.Loaded {
		return znode.ErrDataInconsistency
	}
	if x.replica == nil {
		x.replica = replica.New(m.tree, m.sessions, m.zxid)
	}
	for in := (reader{b: c.Data}); in.off < len(in.b); {
		raw := in.take(in.count(1))
		if in.err != nil {
			return znode.ErrMarshalling
		}
		t, err := replica.ParseTxn(raw)
		switch {
		case err != nil:
			return znode.ErrMarshalling
		case t.Zxid <= m.zxid:
			continue
		case !isNext(m.zxid, t.Zxid):
			return znode.ErrDataInconsistency
		}
		if code := m.followTxn(t, obs); code != znode.OK {
			return code
		}
	}
	return znode.OK
}

// isNext reports whether a source's transaction follows another without a gap: counted on, or the first of a leader.
func isNext(last, next znode.Zxid) bool {
	return next == last+1 || next>>32 > last>>32 && uint32(next) == 1
}

// followTxn applies the next transaction, reports what it changes, and compares the digest that it brings.
func (m *Machine) followTxn(t *replica.Txn, obs Observer) znode.Error {
	x, former := m.mirror, m.sessions.Get(t.Session)
	relayed := x.relays.of(t)
	if relayed != nil {
		m.watchRelay(relayed)
	}
	err := x.replica.Apply(&m.txn, t, false)
	var deleted []string
	if t.Op == replica.OpCloseSession {
		for i := range m.txn.Events {
			deleted = append(deleted, m.txn.Events[i].Path)
		}
	}
	m.reportEvents(obs)
	if err != nil { // some of a multi's operations may have been carried out
		x.Loaded, x.LostAt, x.replica = false, t.Zxid, nil
		return znode.ErrMarshalling
	}
	m.zxid, x.Time = t.Zxid, t.Time
	switch {
	case t.Op == replica.OpCreateSession:
		s := m.sessions.Get(t.Session)
		s.Owner = uint64(NoServer)
		if relayed != nil {
			s.Owner = uint64(relayed.origin.Server)
		}
		obs.SessionOpened(s)
	case t.Op == replica.OpCloseSession && former != nil:
		// A client's request has a number, the leader's own has none (ZooKeeperServer.close).
		obs.SessionClosed(former, deleted, t.Cxid == 0)
	}
	if relayed != nil {
		m.answerRelay(relayed, t, obs)
	}
	if t.HasDigest {
		x.compare(t.Zxid, x.replica.Fits(t))
	}
	return znode.OK
}

// compare counts a digest.
func (x *Mirror) compare(zxid znode.Zxid, equal bool) {
	x.Compared++
	if equal {
		x.DiffersSince = 0
		return
	}
	x.Differing++
	x.LastDiffering = zxid
	if x.FirstDiffering == 0 {
		x.FirstDiffering = zxid
	}
	if x.DiffersSince == 0 {
		x.DiffersSince = zxid
	}
}

// AppendFault encodes the Data of a MirrorFault, for the mirror that was begun so often (Mirror.Begun). A longer reason
// is cut off.
func AppendFault(b []byte, begun uint64, reason string) []byte {
	return append(appendUint(b, begun), strings.ToValidUTF8(reason[:min(len(reason), MaxMirrorFault)], "")...)
}

// ParseFault decodes them.
func ParseFault(data []byte) (begun uint64, reason string, err error) {
	r := reader{b: data}
	begun = r.uint()
	text := r.take(len(data) - r.off)
	if r.err == nil && (len(text) == 0 || len(text) > MaxMirrorFault || !utf8.Valid(text)) {
		r.fail(fmt.Errorf("the reason of a fault has %d bytes; want UTF-8, 1 to %d", len(text), MaxMirrorFault))
	}
	return begun, string(text), r.err
}

func (m *Machine) noteFault(c *Command, obs Observer) znode.Error {
	begun, reason, err := ParseFault(c.Data)
	x := m.mirror
	switch {
	case err != nil:
		return znode.ErrMarshalling
	case begun != x.Begun:
		return znode.ErrSessionMoved
	case x.Fault == "":
		x.Fault, x.Online = reason, false
		m.loseRelays(obs)
	}
	return znode.OK
}
