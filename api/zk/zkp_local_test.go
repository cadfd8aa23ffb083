package zk_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// local is the option of a server whose new sessions are local.
func local(upgrading bool) option {
	return func(s *serverConfig, _ *zkConfig) { s.LocalSessions, s.UpgradeLocalSessions = true, upgrading }
}

// A local session takes no zxid, and is shown where this server's sessions are. Its upgrade takes one.
func TestZKP_Local_TakesNoZxidBeforeItsUpgrade(t *testing.T) {
	k := start(t, local(true))
	a := k.connect()
	h, _ := a.want(znode.OK, wire.OpCreate, create("/a", "", znode.Persistent))
	b := k.connect()
	if text := k.word("dump"); !strings.Contains(text, "Local Session Sets (") || !strings.Contains(text, ")/(2):\n") ||
		!strings.Contains(text, " expire at ") || !strings.Contains(text, "\t"+b.id.String()+"\nGlobal Sessions(0):\n") &&
		!strings.Contains(text, "\t"+a.id.String()+"\nGlobal Sessions(0):\n") {
		t.Errorf("dump %q, want both sessions as local ones", text)
	}
	if text := k.word("cons"); !strings.Contains(text, "sid="+b.id.String()) {
		t.Errorf("cons %q, want session %s", text, b.id)
	}
	b.close()
	if x := k.dial().shake(wire.ConnectRequest{TimeoutMillis: 1000, SessionID: b.id, Password: b.password}); x.SessionID != 0 {
		t.Errorf("a closed session is %+v, want none", x)
	}
	h2, _ := a.want(znode.OK, wire.OpCreate, create("/b", "", znode.Persistent))
	if h2.Zxid != h.Zxid+1 {
		t.Errorf("zxids %s and %s, want them consecutive", h.Zxid, h2.Zxid)
	}
	h3, _ := a.want(znode.OK, wire.OpCreate, create("/e", "", znode.Ephemeral))
	if h3.Zxid != h.Zxid+3 {
		t.Errorf("zxids %s and %s, want one for the session between", h2.Zxid, h3.Zxid)
	}
	if s := a.stat("/e"); s.EphemeralOwner != a.id {
		t.Errorf("the owner is %s, want %s", s.EphemeralOwner, a.id)
	}
	if text := k.word("dump"); !strings.Contains(text, fmt.Sprintf("Local Session Sets (0)/(0):\nGlobal Sessions(1):\n%s\t", a.id)) {
		t.Errorf("dump %q, want the session as a global one", text)
	}
}

// A client that comes back has its session, and its watches when it sets them again; the former connection is closed.
func TestZKP_Local_ReconnectClosesTheOldConnection(t *testing.T) {
	k := start(t, local(false))
	c := k.connect()
	c.create("/a", "")
	d := k.dial().connect(wire.ConnectRequest{TimeoutMillis: 30_000, SessionID: c.id, Password: c.password})
	if d.id != c.id || !bytes.Equal(d.password, c.password) || d.timeout != 30_000 {
		t.Errorf("session %s of %d ms became %s of %d ms", c.id, c.timeout, d.id, d.timeout)
	}
	c.closed()
	d.stat("/a")
}

// Without upgrades an ephemeral is refused, alone and with all of its multi, and requests sent before the answer keep
// their order.
func TestZKP_Local_EphemeralIsRefused(t *testing.T) {
	k := start(t, local(false))
	c := k.connect()
	multi := &wire.MultiRequest{Ops: []wire.MultiOp{
		{Type: wire.OpCreate, Request: create("/p", "", znode.Persistent)},
		{Type: wire.OpCreate2, Request: create("/e", "", znode.EphemeralSequential)},
	}}
	a := c.send(wire.OpCreate, create("/a", "", znode.Persistent))
	e := c.send(wire.OpCreate2, create("/e", "", znode.Ephemeral))
	m := c.send(wire.OpMulti, multi)
	b := c.send(wire.OpCreate, create("/b", "", znode.Persistent))
	for _, x := range []struct {
		xid  wire.Xid
		op   wire.OpCode
		want znode.Error
	}{
		{a, wire.OpCreate, znode.OK}, {e, wire.OpCreate2, znode.ErrEphemeralOnLocal},
		{m, wire.OpMulti, znode.OK}, {b, wire.OpCreate, znode.OK},
	} {
		h, body := c.reply(x.xid, x.op)
		if h.Err != x.want {
			t.Errorf("%s: %s, want %s", x.op, h.Err.Name(), x.want.Name())
		}
		if body, ok := body.(*wire.MultiResponse); ok && (len(body.Results) != 2 || body.Results[0].Err != znode.OK ||
			body.Results[1].Err != znode.ErrEphemeralOnLocal) {
			t.Errorf("multi: %+v, want the refusal of its second operation", body.Results)
		}
	}
	c.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/p"})
}

// An operation that creates no ephemeral, and has the flag of one, replicates the session, and is then what it is for
// any session. ZooKeeper 3.9.5 does not look at these operations: it refuses the container with SESSIONEXPIRED, at which
// clients give up a session that goes on. Those with other flags replicate nothing, next to an ephemeral neither.
func TestZKP_Local_FlagOfAnEphemeralElsewhere(t *testing.T) {
	container := func(path string, mode znode.Mode) wire.MultiOp {
		return wire.MultiOp{Type: wire.OpCreateContainer, Request: create(path, "", mode)}
	}
	ttl := func(path string, mode znode.Mode) wire.MultiOp {
		return wire.MultiOp{Type: wire.OpCreateTTL, Request: &wire.CreateTTLRequest{
			Path: path, ACL: znode.OpenACL, Mode: mode, TTLMillis: 3_600_000}}
	}
	ephemeral := wire.MultiOp{Type: wire.OpCreate, Request: create("/e", "", znode.Ephemeral)}
	for _, x := range []struct {
		name  string
		ops   []wire.MultiOp
		alone bool // not in a multi
		want  znode.Error
		zxids int64 // of the session, if it is replicated, and the request
	}{
		{"a container", []wire.MultiOp{container("/c", znode.Container)}, false, znode.OK, 1},
		{"a TTL", []wire.MultiOp{ttl("/t", znode.PersistentTTL)}, false, znode.OK, 1},
		{"both, and an ephemeral", []wire.MultiOp{container("/c", znode.Container), ttl("/t", znode.PersistentTTL), ephemeral},
			false, znode.OK, 2},
		{"the flag in a container", []wire.MultiOp{container("/c", znode.Ephemeral)}, false, znode.OK, 2},
		{"the flag in a container, alone", []wire.MultiOp{container("/c", znode.Ephemeral)}, true, znode.OK, 2},
		{"the flag in a TTL, alone", []wire.MultiOp{ttl("/t", znode.Ephemeral)}, true, znode.ErrBadArguments, 2},
		{"the flag in a TTL makes an ephemeral", []wire.MultiOp{ttl("/e", znode.Ephemeral)}, false, znode.OK, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			k := start(t, local(true))
			c := k.connect()
			before, _ := c.want(znode.OK, wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1})
			op, request := wire.OpMulti, wire.Request(&wire.MultiRequest{Ops: x.ops})
			if x.alone {
				op, request = x.ops[0].Type, x.ops[0].Request
			}
			h, body := c.want(x.want, op, request)
			if m, ok := body.(*wire.MultiResponse); ok {
				for i := range m.Results {
					if m.Results[i].Err != znode.OK {
						t.Errorf("operation %d: %s, want OK", i, m.Results[i].Err.Name())
					}
				}
			}
			if got := int64(h.Zxid - before.Zxid); got != x.zxids {
				t.Errorf("it took %d zxids, want %d", got, x.zxids)
			}
			for _, path := range []string{"/c", "/t"} { // the session owns none of them
				if h, body := c.call(wire.OpExists, &wire.ExistsRequest{Path: path}); h.Err == znode.OK &&
					body.(*wire.ExistsResponse).Stat.EphemeralOwner == c.id {
					t.Errorf("%s is an ephemeral", path)
				}
			}
		})
	}
}

// Requests behind the ConnectRequest and behind an upgrade are served in their order.
func TestZKP_Local_PipelineThroughTheUpgrade(t *testing.T) {
	c := start(t, local(true)).connect()
	var xids []wire.Xid
	for i := range 50 {
		xids = append(xids, c.send(wire.OpCreate, create(fmt.Sprintf("/e%d", i), "", znode.Ephemeral)),
			c.send(wire.OpExists, &wire.ExistsRequest{Path: fmt.Sprintf("/e%d", i)}))
	}
	end := c.send(wire.OpCloseSession, nil)
	for i, xid := range xids {
		op := []wire.OpCode{wire.OpCreate, wire.OpExists}[i%2]
		if h, _ := c.reply(xid, op); h.Err != znode.OK {
			t.Fatalf("request %d: %s", i, h.Err.Name())
		}
	}
	c.reply(end, wire.OpCloseSession)
	c.closed()
}
