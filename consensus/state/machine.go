package state

import (
	"encoding/binary"
	"fmt"
	"maps"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Machine is the replicated state.
type Machine struct {
	tree     *znode.Tree
	sessions *session.Table
	members  map[ServerID]Member
	voters   map[ServerID]bool // servers of the configuration; true for those that vote
	origins  map[ServerID]progress
	keys     keyTable
	upload   *upload           // the backup, or the state to mirror, that is being uploaded; nil: none
	mirror   *mirror           // the ZooKeeper ensemble that the state is a copy of; nil: none
	takeover Takeover          // how the last mirror has ended; nothing while there is one
	reconfig *Reconfiguration  // nil: none has begun
	leaving  map[ServerID]bool // see Leaving
	zxid     znode.Zxid        // of the last transaction; 0 before the first
	index    uint64            // Raft index of the last entry applied
	term     uint64            // its term
	history  uint64            // see Point; 0: not known
	time     int64             // of the last entry, milliseconds since the epoch
	level    Level             // see Level

	membersChanged uint64 // not replicated

	prepared decoded // by Prepare, for the next Apply

	// Scratch of Apply.
	command  Command
	txn      znode.Txn
	result   Result
	readRoom int              // bytes that a branch may still read
	closed   *session.Session // the session that the last command ended
	deleted  []string         // its ephemerals
}

// maxScratchEvents bounds the buffer of events that is kept for the next
// transaction: more than the largest multi has.
const maxScratchEvents = 1 << 16

// progress records how far a server's commands have been applied.
type progress struct {
	incarnation uint64
	last        uint64 // sequence number
}

// New returns the state before the first entry.
func New() *Machine {
	return &Machine{
		tree:     znode.NewTree(),
		sessions: session.NewTable(),
		members:  map[ServerID]Member{},
		origins:  map[ServerID]progress{},
		keys:     newKeyTable(),
	}
}

// Tree is the tree of znodes, for reading.
func (m *Machine) Tree() *znode.Tree { return m.tree }

// Sessions is the table of sessions, for reading.
func (m *Machine) Sessions() *session.Table { return m.sessions }

// Zxid is the last transaction's id.
func (m *Machine) Zxid() znode.Zxid { return m.zxid }

// Index is the Raft index of the last entry applied.
func (m *Machine) Index() uint64 { return m.index }

// Time is when the last entry was made, by its leader's clock.
func (m *Machine) Time() time.Time { return time.UnixMilli(m.time) }

// Members returns what the servers have published about themselves.
func (m *Machine) Members() map[ServerID]Member { return maps.Clone(m.members) }

// Applied returns the sequence number of the last applied command of an origin;
// 0 if there was none.
func (m *Machine) Applied(o Origin) uint64 {
	if have := m.origins[o.Server]; have.incarnation == o.Incarnation {
		return have.last
	}
	return 0
}

// Incarnation returns the newest incarnation of a server in the log; 0 if it
// has never sent a command.
func (m *Machine) Incarnation(id ServerID) uint64 { return m.origins[id].incarnation }

// Apply applies one entry of the log, which Raft gave an index and a term. An
// error means that this server must stop: it cannot apply the entry, and the
// others may have applied it.
func (m *Machine) Apply(index, term uint64, entry []byte, obs Observer) error {
	e, err := readEntry(entry)
	if err != nil {
		return fmt.Errorf("applying entry %d of term %d: %w", index, term, err)
	}
	for ; e.batches > 0; e.batches-- {
		g := e.batch()
		if e.err != nil {
			break
		}
		if err := m.applyBatch(&g, term, e.timeMillis, obs); err != nil {
			return fmt.Errorf("applying entry %d of term %d: %w", index, term, err)
		}
	}
	if e.err == nil && e.off != len(e.b) {
		e.fail(fmt.Errorf("%d bytes after the last batch", len(e.b)-e.off))
	}
	if e.err != nil {
		return fmt.Errorf("applying entry %d of term %d: %w", index, term, e.err)
	}
	m.index, m.time = index, e.timeMillis
	return nil
}

// applyBatch applies those commands of g that are new.
func (m *Machine) applyBatch(g *Batch, term uint64, timeMillis int64, obs Observer) error {
	have := m.origins[g.Server]
	switch {
	case g.Incarnation < have.incarnation:
		return nil // sent by the server before its restart
	case g.Incarnation > have.incarnation:
		have = progress{incarnation: g.Incarnation}
	}
	r := reader{b: g.Commands}
	for seq := g.First; seq < g.First+uint64(g.Count); seq++ {
		body := reader{b: r.take(r.count(1))}
		if r.err != nil {
			return fmt.Errorf("command %d of server %d: %w", seq, g.Server, r.err)
		}
		if seq <= have.last && !fault.On(fault.DropDedupe) {
			continue
		}
		if seq > have.last+1 {
			obs.Gap(g.Origin, have.last+1)
			m.origins[g.Server] = have
			return nil
		}
		m.command.decode(&body)
		if body.err != nil {
			return fmt.Errorf("command %d of server %d: %w", seq, g.Server, body.err)
		}
		have.last = max(have.last, seq)
		m.applyCommand(g.Origin, term, timeMillis, obs)
		if err := m.level.Spoken(); err != nil {
			return err
		}
		obs.Result(g.Origin, seq, &m.result)
	}
	m.origins[g.Server] = have
	return r.end(g.Server)
}

// applyCommand applies m.command, reports its events and fills m.result.
func (m *Machine) applyCommand(origin Origin, term uint64, timeMillis int64, obs Observer) {
	c, from := &m.command, origin.Server
	m.result = Result{Op: c.Op, Multi: m.result.Multi[:0], Zxid: m.zxid}
	if c.Flags&FlagKeyed != 0 && m.answered(c, timeMillis) {
		if c.Op == OpRestore {
			m.forgetUpload(c.Restore.Upload)
		}
		return
	}
	if code := m.admit(c, from); code != znode.OK {
		m.result.Code = code
		return
	}
	if m.mirror != nil && m.mirror.carries(c) {
		m.relay(c, origin, term, obs)
		return
	}
	var b *backup.Backup
	switch c.Op {
	case OpSync, OpDigest:
		return
	case OpLevel, OpMirror, OpReconfig, OpAttach, OpPurge:
		m.applyApart(c, from, term, timeMillis, obs)
		return
	case OpRestore:
		if b = m.receive(c, from, timeMillis); b == nil {
			return
		}
		// Clients of the backup's ensemble, and what they remember of it, must not
		// be ahead.
		m.zxid = max(m.zxid, b.Zxid())
	case OpExpireSession:
		if c.Term != term || m.sessions.Get(c.Session) == nil {
			return // decided by a leader that has been replaced, or too late
		}
	case OpMember:
		if _, in := m.voters[c.Member.ID]; !in && len(m.voters) > 0 {
			m.result.Code = znode.ErrBadArguments // it has been removed meanwhile
			return
		}
		have := m.members[c.Member.ID]
		have.Voter = false
		if c.Member = m.merged(c.Member); have == c.Member {
			return // a server restarted at the same addresses
		}
		if have.shown() == c.Member.shown() || m.reconfig != nil {
			m.setMember(c.Member)
			return // /zookeeper/config stays as it is
		}
	}
	m.begin(term, timeMillis)
	if b == nil {
		m.transact(c, from)
	} else {
		m.tree, m.result.Restored = backup.Merge(&m.txn, m.tree, b)
	}
	m.result.Zxid = m.zxid
	if c.Flags&FlagKeyed != 0 {
		m.keys.add(c, &m.result, timeMillis)
	}
	m.reportEvents(obs)
	if m.result.Code != znode.OK {
		return
	}
	switch c.Op {
	case OpCreateSession:
		obs.SessionOpened(m.result.Session)
	case OpCloseSession, OpExpireSession:
		if m.closed != nil { // nil if a client's command closes session 0, which does not exist
			obs.SessionClosed(m.closed, m.deleted, c.Op == OpExpireSession)
			m.deleted = nil // it would keep their data alive
		}
	}
}

// reportEvents reports those of the last transaction.
func (m *Machine) reportEvents(obs Observer) {
	for i := range m.txn.Events {
		obs.Event(&m.txn.Events[i])
	}
	for _, path := range m.txn.Exceeded {
		obs.QuotaExceeded(path)
	}
	if len(m.txn.Events) > maxScratchEvents {
		m.txn.Events = nil // they would keep the former tree's znodes alive
	}
}

// admit checks that the command's session exists and belongs to the server that
// sent it. It refuses a server whose client has moved away, also for commands
// that the server sends again.
func (m *Machine) admit(c *Command, from ServerID) znode.Error {
	if m.level >= level2 {
		if code := m.forbids(c); code != znode.OK {
			return code
		}
	}
	if m.mirror != nil && m.mirror.carries(c) {
		if code := m.admitRelay(c); code != znode.OK {
			return code
		}
	}
	switch c.Op {
	case OpCreateSession, OpAttach, OpExpireSession, OpReap, OpMember, OpLevel:
		return znode.OK
	}
	if c.Session == 0 {
		return znode.OK
	}
	s := m.sessions.Get(c.Session)
	switch {
	case s == nil:
		return znode.ErrSessionExpired
	case s.Owner != uint64(from) && c.Flags&FlagAnyServer == 0 && !fault.On(fault.ForgetOwner):
		return znode.ErrSessionMoved
	}
	return znode.OK
}

// Result is the outcome of a command. It is valid only during the call that
// delivers it.
type Result struct {
	Op    Op
	Zxid  znode.Zxid // the transaction's; for other commands the last one's
	Code  znode.Error
	Path  string     // OpCreate; OpDeleteAll, OpBranch: the znode that made it fail
	Stat  znode.Stat // OpCreate, OpSetData, OpSetACL
	Multi []OpResult // OpMulti, OpBranch: of the operations that were chosen
	Then  bool       // OpBranch: the conditions held
	// Session is the session of OpCreateSession or OpAttach.
	Session *session.Session
	Key     KeyOutcome // of a command with a Key
	// Relay, unless 0, is the number with which the command was relayed, or of the reconfiguration that it began.
	// Observer.Relayed brings its outcome; only Op and Zxid count before.
	Relay uint64
	// Restored is what the commit of a restore has changed.
	Restored backup.Changes
}

// OpResult is the outcome of one operation of a multi. If the multi failed, Code
// is OK for the operations before the one that failed, and ErrRuntimeInconsistency
// for those after it, although none has happened.
type OpResult struct {
	Op   Op
	Kind znode.CreateKind
	Code znode.Error
	Path string
	Stat znode.Stat
	Read *Read // OpGet, OpChildren
}

// Observer receives the effects of Apply, in the order of the log, on the
// goroutine that calls Apply. For one command: the Events, then changes of
// sessions, then the Result; a MirrorFollow has Events and sessions of one
// transaction after the other. No method may block.
type Observer interface {
	// Event reports an edit of the tree, or with the types EventPurged and EventPurgedBelow what to forget.
	Event(e *znode.Event)
	// Result delivers a command's outcome.
	Result(o Origin, seq uint64, r *Result)
	// Gap reports that commands of an origin were dropped because the one with
	// number want has not arrived: the origin must send again from there.
	Gap(o Origin, want uint64)
	// SessionOpened reports a new session.
	SessionOpened(s *session.Session)
	// SessionAttached reports that a session's client is now at s.Owner. It was
	// at former, which may be the same.
	SessionAttached(s *session.Session, former ServerID)
	// SessionClosed reports a session's end, after which s no longer changes, and the paths of its deleted
	// ephemerals, which share the znodes' memory.
	SessionClosed(s *session.Session, ephemerals []string, expired bool)
	// QuotaExceeded reports a subtree over a soft or hard limit.
	QuotaExceeded(path string)
	// Relayed reports a new relay, with r nil, or a relay's outcome, as Result does. The code ErrConnectionLoss means
	// that the outcome will not be known.
	Relayed(number uint64, r *Result)
}

// Unobserved is an Observer that ignores everything.
type Unobserved struct{}

// Event implements Observer.
func (Unobserved) Event(*znode.Event) {}

// Result implements Observer.
func (Unobserved) Result(Origin, uint64, *Result) {}

// Gap implements Observer.
func (Unobserved) Gap(Origin, uint64) {}

// SessionOpened implements Observer.
func (Unobserved) SessionOpened(*session.Session) {}

// SessionAttached implements Observer.
func (Unobserved) SessionAttached(*session.Session, ServerID) {}

// SessionClosed implements Observer.
func (Unobserved) SessionClosed(*session.Session, []string, bool) {}

// QuotaExceeded implements Observer.
func (Unobserved) QuotaExceeded(string) {}

// Relayed implements Observer.
func (Unobserved) Relayed(uint64, *Result) {}

// Point is an entry's place in the history of the log. Two servers have the same History at an index if they
// applied the same entries up to there.
type Point struct {
	Index   uint64 `json:"index"`
	Term    uint64 `json:"term"`
	Time    int64  `json:"time"` // of the entry or one before, milliseconds since the epoch
	History uint64 `json:"history"`
}

// Chain adds an applied entry, also one of Raft's configurations, to the history, which becomes the hash of the
// former one, the entry's index and term, and the hash of its bytes.
func (m *Machine) Chain(index, term uint64, entry []byte) Point {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], m.history)
	binary.LittleEndian.PutUint64(b[8:], index)
	binary.LittleEndian.PutUint64(b[16:], term)
	binary.LittleEndian.PutUint64(b[24:], xxhash.Sum64(entry))
	m.term, m.history = term, max(1, xxhash.Sum64(b[:]))
	return m.Point()
}

// Point returns the place of the last applied entry; its History is 0 if that is not known, as in a backup.
func (m *Machine) Point() Point { return Point{m.index, m.term, m.time, m.history} }

// Point returns the place of the last entry in the snapshot.
func (s *Snapshot) Point() Point { return Point{s.index, s.term, s.time, s.history} }
