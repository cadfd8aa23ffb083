package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Op is the operation of a Command. The numbers are stored in the log: never reuse one.
type Op uint8

// The operations.
const (
	OpCreate        Op = 1
	OpDelete        Op = 2
	OpSetData       Op = 3
	OpSetACL        Op = 4
	OpCheck         Op = 5 // only inside OpMulti
	OpMulti         Op = 6
	OpSync          Op = 7 // changes nothing; only its place in the log matters
	OpCreateSession Op = 8
	OpCloseSession  Op = 9
	OpAttach        Op = 10 // a session's client has connected to the origin server
	OpExpireSession Op = 11 // by the leader's clock
	OpReap          Op = 12 // by the leader's reaper of containers and TTL znodes
	OpMember        Op = 13 // a server publishes its addresses
	OpCheckAbsent   Op = 14 // only inside OpMulti: the znode must not exist
	OpDeleteAll     Op = 15 // a znode and all below it, at most MaxSubtree
	OpRestore       Op = 16 // a step of a restore; see RestoreStep
	OpDigest        Op = 17 // changes nothing; every server takes the digest of its state there
	OpLevel         Op = 18 // raises the ensemble's level
	OpMirror        Op = 19 // a step of mirroring a ZooKeeper ensemble; see MirrorStep
	OpReconfig      Op = 20 // a step of a reconfiguration; see ReconfigStep
	OpPurge         Op = 21 // changes nothing; every server forgets the values that znodes had
	OpBranch        Op = 22 // operations that depend on conditions; see Branch
	OpGet           Op = 23 // only inside OpBranch: a znode's data and Stat
	OpChildren      Op = 24 // only inside OpBranch: the names of its children, and its Stat
)

// commandVersion is the first byte of every command.
const commandVersion = 1

// Flags of a Command: settings of the server that accepted it, stored in it so
// that servers with different settings apply it alike.
type Flags uint8

// The flags.
const (
	FlagExtendedTypes Flags = 1 << iota // TTL znodes allowed
	FlagEnforceQuota                    // hard quotas refuse
	// FlagAnyServer admits a command of a session from any server: its client
	// has no connection that could have moved, only requests.
	FlagAnyServer
	// FlagKeyed means that the command has a Key.
	FlagKeyed
	// FlagTraced means that the command has a Trace, from level2 on.
	FlagTraced
)

// Command is one request for a change, in the order of the log. Op determines
// which fields are used.
type Command struct {
	Op         Op
	Flags      Flags
	Session    znode.SessionID // 0: no session (HTTP without one, or the leader)
	Identities []znode.ID      // of the client
	Key        string          // with FlagKeyed: apply once; see KeyOutcome
	Trace      string          // with FlagTraced: see SetTrace

	Path    string
	Data    []byte
	Version znode.Version
	// Mzxid, unless 0, is the mzxid that the znode must have for OpDelete, OpDeleteAll,
	// OpSetData or OpCheck; otherwise they fail as for a wrong Version. Unlike a version
	// it does not recur when a znode is deleted and created.
	Mzxid znode.Zxid
	ACL   []znode.ACL
	Mode  znode.Mode
	Kind  znode.CreateKind
	TTL   int64     // milliseconds
	Ops   []Command // of OpMulti and OpBranch; of each only Op and the fields from Path on count

	Timeout  time.Duration    // OpCreateSession, OpAttach
	Password session.Password // OpCreateSession, OpAttach
	Term     uint64           // OpExpireSession, OpMirror, OpReconfig: the term in which the leader decided
	Member   Member           // OpMember
	Restore  RestoreCommand   // OpRestore; OpMirror: Upload, Part and Sum
	Level    Level            // OpLevel
	Mirror   MirrorStep       // OpMirror
	Reconfig *Reconfig        // OpReconfig
	Branch   *Branch          // OpBranch
	Below    bool             // OpPurge: the znodes below Path, too
}

// Append encodes c.
func (c *Command) Append(b []byte) []byte {
	b = append(b, commandVersion, byte(c.Op), byte(c.Flags))
	b = appendInt(b, int64(c.Session))
	b = appendUint(b, uint64(len(c.Identities)))
	for _, id := range c.Identities {
		b = appendString(appendString(b, id.Scheme), id.ID)
	}
	if c.Flags&FlagKeyed != 0 {
		b = appendString(b, c.Key)
	}
	if c.Flags&FlagTraced != 0 {
		b = appendString(b, c.Trace)
	}
	return c.appendBody(b)
}

// SetTrace names the trace of which the client's request is a part, as W3C Trace Context writes it in traceparent, for
// those who read of the change. An ensemble whose level knows no traces, and an empty one, leave c as it is.
func (c *Command) SetTrace(traceparent string, now Level) {
	if traceparent != "" && now >= level2 {
		c.Flags |= FlagTraced
		c.Trace = traceparent
	}
}

func (c *Command) appendBody(b []byte) []byte {
	switch c.Op {
	case OpCreate:
		b = append(appendString(b, c.Path), byte(c.Kind))
		b = appendInt(appendInt(b, int64(c.Mode)), c.TTL)
		return appendData(appendACL(b, c.ACL), c.Data)
	case OpDelete, OpCheck, OpDeleteAll:
		return appendInt(appendInt(appendString(b, c.Path), int64(c.Version)), int64(c.Mzxid))
	case OpSetData:
		b = appendInt(appendInt(appendString(b, c.Path), int64(c.Version)), int64(c.Mzxid))
		return appendData(b, c.Data)
	case OpSetACL:
		return appendACL(appendInt(appendString(b, c.Path), int64(c.Version)), c.ACL)
	case OpMulti:
		return appendOps(b, c.Ops)
	case OpBranch:
		return c.Branch.append(b, c.Ops)
	case OpCreateSession, OpAttach:
		return append(appendInt(b, c.Timeout.Milliseconds()), c.Password[:]...)
	case OpExpireSession:
		return appendUint(b, c.Term)
	case OpReap, OpCheckAbsent, OpGet, OpChildren:
		return appendString(b, c.Path)
	case OpMember:
		b = appendUint(b, uint64(c.Member.ID))
		return c.Member.append(b)
	case OpRestore:
		return appendData(c.Restore.append(b), c.Data)
	case OpLevel:
		return appendUint(b, uint64(c.Level))
	case OpMirror:
		b = appendUint(append(b, byte(c.Mirror)), c.Term)
		b = appendUint(appendUint(appendUint(b, c.Restore.Upload), c.Restore.Part), c.Restore.Sum)
		return appendData(b, c.Data)
	case OpReconfig:
		return c.Reconfig.append(b, c.Term)
	case OpPurge:
		return append(appendString(b, c.Path), flag(c.Below))
	}
	return b
}

func appendOps(b []byte, ops []Command) []byte {
	b = appendUint(b, uint64(len(ops)))
	for i := range ops {
		b = ops[i].appendBody(append(b, byte(ops[i].Op)))
	}
	return b
}

// Check returns an error if c could not be decoded: an unknown operation, a
// negative timeout. Such a command must not get into the log.
func (c *Command) Check() error {
	switch {
	case !c.Op.known():
		return fmt.Errorf("unknown operation %d", c.Op)
	case c.Timeout < 0:
		return fmt.Errorf("timeout of %v", c.Timeout)
	case c.Restore.Step > lastRestoreStep:
		return errRestoreStep(c.Restore.Step)
	case c.Mirror > lastMirrorStep:
		return errMirrorStep(c.Mirror)
	case c.Op == OpLevel && c.Level == 0:
		return errors.New("feature level 0")
	case c.Op == OpReconfig:
		return c.Reconfig.check()
	case c.Op == OpBranch:
		if err := c.Branch.check(c); err != nil {
			return err
		}
	case c.Op != OpMulti:
		return nil
	}
	for i := range c.Ops {
		if !c.has(c.Ops[i].Op) {
			return fmt.Errorf("operation %d inside a %v", c.Ops[i].Op, c.Op)
		}
	}
	return nil
}

// decode fills c from all of r, and reuses c's slices. Strings and data point
// into r's bytes.
func (c *Command) decode(r *reader) {
	ids, ops := c.Identities[:0], c.Ops[:0]
	if v := r.byte(); v != commandVersion && r.err == nil {
		r.fail(fmt.Errorf("command has version %d, this server reads version %d", v, commandVersion))
	}
	*c = Command{Op: Op(r.byte()), Flags: Flags(r.byte()), Session: znode.SessionID(r.int())}
	for n := r.count(2); n > 0; n-- {
		ids = append(ids, znode.ID{Scheme: r.string(), ID: r.string()})
	}
	c.Identities, c.Ops = ids, ops
	if c.Flags&FlagKeyed != 0 {
		c.Key = r.string()
	}
	if c.Flags&FlagTraced != 0 {
		c.Trace = r.string()
	}
	c.decodeBody(r)
	if r.off != len(r.b) {
		r.fail(fmt.Errorf("%d bytes after the command", len(r.b)-r.off))
	}
}

func (c *Command) decodeBody(r *reader) {
	switch c.Op {
	case OpCreate:
		c.Path, c.Kind, c.Mode = r.string(), znode.CreateKind(r.byte()), znode.Mode(r.int())
		c.TTL, c.ACL, c.Data = r.int(), r.acl(), r.data()
	case OpDelete, OpCheck, OpDeleteAll:
		c.Path, c.Version, c.Mzxid = r.string(), znode.Version(r.int()), znode.Zxid(r.int())
	case OpSetData:
		c.Path, c.Version, c.Mzxid = r.string(), znode.Version(r.int()), znode.Zxid(r.int())
		c.Data = r.data()
	case OpSetACL:
		c.Path, c.Version, c.ACL = r.string(), znode.Version(r.int()), r.acl()
	case OpMulti:
		c.decodeOps(r)
	case OpBranch:
		c.Branch = readBranch(r)
		if c.decodeOps(r); r.err == nil && c.Branch.Then > len(c.Ops) {
			r.fail(c.Branch.check(c))
		}
	case OpCreateSession, OpAttach:
		c.Timeout = r.millis()
		copy(c.Password[:], r.take(znode.PasswordSize))
	case OpExpireSession:
		c.Term = r.uint()
	case OpReap, OpCheckAbsent, OpGet, OpChildren:
		c.Path = r.string()
	case OpMember:
		c.Member = readMember(ServerID(r.uint()), r)
	case OpRestore:
		c.Restore, c.Data = readRestore(r), r.data()
	case OpLevel:
		if c.Level = Level(r.uint()); c.Level == 0 {
			r.fail(errors.New("feature level 0"))
		}
	case OpMirror:
		if c.Mirror, c.Term = MirrorStep(r.byte()), r.uint(); c.Mirror > lastMirrorStep {
			r.fail(errMirrorStep(c.Mirror))
		}
		c.Restore.Upload, c.Restore.Part, c.Restore.Sum = r.uint(), r.uint(), r.uint()
		c.Data = r.data()
	case OpReconfig:
		c.Reconfig, c.Term = readReconfig(r)
	case OpPurge:
		c.Path, c.Below = r.string(), r.byte() != 0
	default: // OpSync, OpCloseSession and others have no more
		if !c.Op.known() {
			r.fail(fmt.Errorf("unknown operation %d", c.Op))
		}
	}
}

func (c *Command) decodeOps(r *reader) {
	for n := r.count(2); n > 0; n-- {
		sub := Command{Op: Op(r.byte())}
		if !c.has(sub.Op) {
			r.fail(fmt.Errorf("operation %d inside a %v", sub.Op, c.Op))
			return
		}
		sub.decodeBody(r)
		c.Ops = append(c.Ops, sub)
	}
}

// has reports whether an operation may be one of the Ops of c, an OpMulti or OpBranch.
func (c *Command) has(o Op) bool {
	return o >= OpCreate && o <= OpCheck || o == OpCheckAbsent || o.Reads() && c.Op == OpBranch
}

// Reads reports whether o may be inside an OpBranch only, and changes nothing.
func (o Op) Reads() bool { return o == OpGet || o == OpChildren }

// MaxCommand bounds a client's encoded command, in bytes, on all servers alike, whatever their jute.maxbuffer: every
// server must be able to read a command that another has accepted, and keep it in one segment of its log, of 64 MiB
// (raftlog.DefaultSegmentSize).
const MaxCommand = 60 << 20

// MaxSize is an upper bound of the bytes of c's encoding, and close to it.
func (c *Command) MaxSize() int {
	const numbers, identity = 256, 16
	n := numbers + len(c.Key) + len(c.Trace) + c.maxBodySize() + c.Reconfig.size() + c.Branch.size()
	for _, id := range c.Identities {
		n += identity + len(id.Scheme) + len(id.ID)
	}
	for i := range c.Ops {
		n += c.Ops[i].maxBodySize()
	}
	return n
}

func (c *Command) maxBodySize() int {
	const numbers, entry = 64, 32
	n := numbers + len(c.Path) + len(c.Data)
	for _, a := range c.ACL {
		n += entry + len(a.ID.Scheme) + len(a.ID.ID)
	}
	return n
}
