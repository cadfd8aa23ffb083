package inspect

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// change is what a transaction of ZooKeeper, or a command of ours, does.
type change struct {
	Op      string   `json:"op"`
	Zxid    hex      `json:"zxid,omitempty"`   // of a mirrored transaction
	Session hex      `json:"client,omitempty"` // and its session
	Path    string   `json:"path,omitempty"`
	Mode    string   `json:"mode,omitempty"`
	TTL     int64    `json:"ttl_ms,omitempty"`
	Version *int32   `json:"version,omitempty"` // of ZooKeeper's the new one, of ours the expected one
	Mzxid   hex      `json:"mzxid,omitempty"`   // the expected one
	ACL     []string `json:"acl,omitempty"`
	content
	Creates *int32   `json:"parent_cversion,omitempty"`
	Timeout *int64   `json:"timeout_ms,omitempty"`
	Code    string   `json:"code,omitempty"`
	Closed  []string `json:"ephemerals,omitempty"` // of a session that is closed
	Detail  string   `json:"detail,omitempty"`
	Ops     []change `json:"ops,omitempty"`
}

// String is the change on one line.
func (c *change) String() string {
	var b strings.Builder
	b.WriteString(c.Op)
	say := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	if c.Zxid != 0 {
		say("zxid %v session %v", c.Zxid, c.Session)
	}
	if c.Path != "" {
		say("%s", shown(c.Path))
	}
	if c.Mode != "" {
		say("%s", c.Mode)
	}
	if c.TTL != 0 {
		say("ttl=%d ms", c.TTL)
	}
	if c.Version != nil {
		say("version=%d", *c.Version)
	}
	if c.Mzxid != 0 {
		say("mzxid=%v", c.Mzxid)
	}
	if c.Creates != nil {
		say("parentCversion=%d", *c.Creates)
	}
	if len(c.ACL) > 0 {
		say("acl=%s", shown(strings.Join(c.ACL, ",")))
	}
	switch {
	case c.Null:
		say("dataLength=0 (null)")
	case c.Length != nil:
		say("dataLength=%d", *c.Length)
	}
	if c.Data != nil {
		say("data=%s", *c.Data)
	}
	if c.Timeout != nil {
		say("timeout=%d ms", *c.Timeout)
	}
	if c.Code != "" {
		say("%s", c.Code)
	}
	for _, path := range c.Closed {
		say("%s", shown(path))
	}
	if c.Detail != "" {
		say("%s", shown(c.Detail))
	}
	for i := range c.Ops {
		say("[%v]", &c.Ops[i])
	}
	return b.String()
}

var modes = map[znode.Mode]string{
	znode.Persistent: "persistent", znode.Ephemeral: "ephemeral", znode.PersistentSequential: "persistent_sequential",
	znode.EphemeralSequential: "ephemeral_sequential", znode.Container: "container", znode.PersistentTTL: "ttl",
	znode.PersistentSequentialTTL: "sequential_ttl",
}

// command describes a command of ours. It leaves out the client's identities, and passwords and tokens.
func (p *printer) command(c *state.Command) change {
	out := change{Op: c.Op.String(), Path: c.Path}
	version := int32(c.Version)
	switch c.Op {
	case state.OpCreate:
		if out.Mode = modes[c.Mode]; out.Mode == "" {
			out.Mode = fmt.Sprintf("mode %d", c.Mode)
		}
		out.TTL, out.ACL, out.content = c.TTL, p.acl(c.ACL), p.content(c.Data)
	case state.OpDelete, state.OpCheck, state.OpDeleteAll:
		out.Version, out.Mzxid = &version, hex(c.Mzxid)
	case state.OpSetData:
		out.Version, out.Mzxid, out.content = &version, hex(c.Mzxid), p.content(c.Data)
	case state.OpSetACL:
		out.Version, out.ACL = &version, p.acl(c.ACL)
	case state.OpMulti:
		for i := range c.Ops {
			out.Ops = append(out.Ops, p.command(&c.Ops[i]))
		}
	case state.OpBranch:
		out.Ops = p.branch(c)
	case state.OpCreateSession, state.OpAttach:
		millis := c.Timeout.Milliseconds()
		out.Timeout = &millis
	case state.OpExpireSession:
		out.Detail = fmt.Sprintf("by the leader of term %d", c.Term)
	case state.OpMember:
		out.Detail = fmt.Sprintf("server %d, %s, client %s, http %s, version %s", c.Member.ID, c.Member.Peer,
			c.Member.Client, c.Member.HTTP, c.Member.Version)
	case state.OpRestore:
		out.Detail = fmt.Sprintf("step %d of upload %d", c.Restore.Step, c.Restore.Upload)
		out.content = p.content(c.Data)
		out.Data = nil // a part of a backup, which has passwords of sessions
	case state.OpMirror:
		out.Detail = fmt.Sprintf("step %d, by the leader of term %d", c.Mirror, c.Term)
		out.content = p.content(c.Data)
		switch c.Mirror {
		case state.MirrorFollow:
			out.Ops = p.mirrored(c.Data)
		case state.MirrorStop:
			if t, err := state.ParseTakeover(c.Data); err == nil && len(c.Data) > 0 {
				out.Detail += ": " + t.String()
			}
		case state.MirrorFault:
			if _, reason, err := state.ParseFault(c.Data); err == nil {
				out.Detail += ": " + reason
			}
		}
		out.Data = nil // it is shown, or a part of a state, which has passwords of sessions
	case state.OpLevel:
		out.Detail = fmt.Sprint(c.Level)
	case state.OpPurge:
		if c.Below {
			out.Detail = "and all below"
		}
	}
	return out
}

// branch describes conditions and both lists of operations.
func (p *printer) branch(c *state.Command) (all []change) {
	for i := range c.Branch.If {
		x := &c.Branch.If[i]
		one := change{Op: "if", Path: x.Path, Detail: fmt.Sprintf("%v %v %d", x.Of, x.Is, x.Number)}
		if x.Of == znode.OfData {
			one.Detail, one.content = fmt.Sprintf("%v %v", x.Of, x.Is), p.content(x.Data)
		}
		all = append(all, one)
	}
	then, otherwise := c.Branches()
	for i, ops := range [][]state.Command{then, otherwise} {
		list := change{Op: [...]string{"then", "else"}[i]}
		for k := range ops {
			list.Ops = append(list.Ops, p.command(&ops[k]))
		}
		all = append(all, list)
	}
	return all
}

// mirrored describes the transactions that a mirror follows; what cannot be read ends the list.
func (p *printer) mirrored(b []byte) (all []change) {
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return append(all, change{Op: "unknown", Detail: "the transactions end early"})
		}
		t, err := replica.ParseTxn(b[size : size+int(n)])
		if err != nil {
			return append(all, change{Op: "unknown", Detail: err.Error()})
		}
		c := p.transaction(&t.Change)
		c.Zxid, c.Session = hex(t.Zxid), hex(t.Session)
		all, b = append(all, c), b[size+int(n):]
	}
	return all
}

// transaction describes a transaction of ZooKeeper's.
func (p *printer) transaction(c *replica.Change) change {
	out := change{Op: c.Op.String(), Path: c.Path}
	version, creates := int32(c.Version), c.Creates
	switch c.Op {
	case replica.OpCreate, replica.OpCreate2, replica.OpCreateContainer, replica.OpCreateTTL:
		if out.Mode = znode.KindPersistent; c.Ephemeral {
			out.Mode = znode.KindEphemeral
		}
		out.TTL, out.Creates, out.ACL, out.content = c.TTL, &creates, p.acl(c.ACL), p.content(c.Data)
	case replica.OpSetData, replica.OpReconfig:
		out.Version, out.content = &version, p.content(c.Data)
	case replica.OpSetACL:
		out.Version, out.ACL = &version, p.acl(c.ACL)
	case replica.OpCheck:
		out.Version = &version
	case replica.OpCreateSession:
		millis := int64(c.Timeout)
		out.Timeout = &millis
	case replica.OpCloseSession:
		out.Closed = c.Closed
	case replica.OpError:
		out.Code = c.Code.Name()
	case replica.OpMulti:
		for i := range c.Multi {
			out.Ops = append(out.Ops, p.transaction(&c.Multi[i]))
		}
	}
	return out
}

// txnItem is a transaction in a log of ZooKeeper's.
type txnItem struct {
	Kind    string `json:"kind"` // "transaction"
	Offset  int64  `json:"offset"`
	Time    string `json:"time"`
	Session hex    `json:"session"`
	Cxid    int32  `json:"cxid"`
	Zxid    hex    `json:"zxid"`
	Digest  string `json:"digest,omitempty"`
	change
}

// text is the line of TxnLogToolkit.
func (t *txnItem) text(w io.Writer) {
	fmt.Fprintf(w, "%s session %v cxid 0x%x zxid %v %v", t.Time, t.Session, uint32(t.Cxid), t.Zxid, &t.change)
	if t.Digest != "" {
		fmt.Fprintf(w, " digest=%s", t.Digest)
	}
	fmt.Fprintln(w)
}
