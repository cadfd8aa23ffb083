//go:build interop

package conformance_test

import (
	"fmt"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// step is one line of a script: the action of one session.
type step struct {
	who  string
	kind kind
	// requests are sent at once; the next step waits for all replies.
	requests []request
	// server (1..3) is the one to connect to; timeout is in ticks.
	server, timeout int
	// bytes are sent as they are.
	bytes []byte
	// path is what expire waits to vanish.
	path string
	// readOnly allows the server to serve reads alone.
	readOnly bool
}

// longSession is the usual session timeout, in ticks. A step may take long on a
// busy machine, and no session must expire meanwhile.
const longSession = 240

type kind int

const (
	send    kind = iota
	connect      // a new session
	resume       // the same session, at a server, without its old connection
	drop         // break the connection
	expire       // break the connection and wait until the session has expired
	raw          // send bytes
	try          // as resume, once: the server may say that the session has expired, or nothing
	lose         // end the second and the third server, and wait until the first one serves reads alone
	regain       // start them again
)

// request is one request of a step.
type request struct {
	op   wire.OpCode
	xid  wire.Xid // 0: the next
	body wire.Request
	// since makes the relative zxid of setWatches: that of a step's end.
	since int
}

func (s *step) String() string {
	if s.kind != send {
		return fmt.Sprintf("%s %s", s.who, [...]string{"send", "connect", "resume", "drop", "expire",
			"raw", "try", "lose", "regain"}[s.kind])
	}
	text := s.who
	for _, r := range s.requests {
		text += fmt.Sprintf(" %s %+v", r.op, describe(r.body))
	}
	return text
}

// describe shows what are pointers: the operations of a multi, and the texts of a reconfig.
func describe(body wire.Request) any {
	if q, ok := body.(*wire.ReconfigRequest); ok {
		text := ""
		for _, x := range []*string{q.JoiningServers, q.LeavingServers, q.NewMembers} {
			if x == nil {
				text += "null "
			} else {
				text += fmt.Sprintf("%q ", *x)
			}
		}
		return fmt.Sprint(text, "version ", q.CurConfigID)
	}
	m, ok := body.(*wire.MultiRequest)
	if !ok {
		return body
	}
	text := ""
	for _, op := range m.Ops {
		text += fmt.Sprintf("[%s %+v]", op.Type, op.Request)
	}
	return text
}

// session names a client of a script; its methods are the script's words.
type session string

func (s session) do(op wire.OpCode, body wire.Request) step {
	return step{who: string(s), requests: []request{{op: op, body: body}}}
}

func (s session) connect(server int) step {
	return step{who: string(s), kind: connect, server: server, timeout: longSession}
}

func (s session) connectFor(server, ticks int) step {
	return step{who: string(s), kind: connect, server: server, timeout: ticks}
}

func (s session) resume(server int) step {
	return step{who: string(s), kind: resume, server: server, timeout: longSession}
}

func (s session) connectReadOnly(server int) step {
	return step{who: string(s), kind: connect, server: server, timeout: longSession, readOnly: true}
}

func (s session) try(server int, readOnly bool) step {
	return step{who: string(s), kind: try, server: server, timeout: longSession, readOnly: readOnly}
}

func (s session) drop() step               { return step{who: string(s), kind: drop} }
func (s session) expire(path string) step  { return step{who: string(s), kind: expire, path: path} }
func (s session) raw(b ...byte) step       { return step{who: string(s), kind: raw, bytes: b} }
func (s session) close() step              { return s.do(wire.OpCloseSession, nil) }
func (s session) ping() step               { return s.do(wire.OpPing, nil) }
func (s session) sync(path string) step    { return s.do(wire.OpSync, &wire.SyncRequest{Path: path}) }
func (s session) whoAmI() step             { return s.do(wire.OpWhoAmI, nil) }
func (s session) burst(steps ...step) step { return join(s, steps) }

// join makes one step of several, whose requests are sent at once.
func join(s session, steps []step) step {
	all := step{who: string(s)}
	for _, x := range steps {
		all.requests = append(all.requests, x.requests...)
	}
	return all
}

func (s session) create(path string, data []byte, mode znode.Mode) step {
	return s.createACL(path, data, mode, znode.OpenACL)
}

func (s session) createACL(path string, data []byte, mode znode.Mode, acl []znode.ACL) step {
	return s.do(wire.OpCreate, &wire.CreateRequest{Path: path, Data: data, ACL: acl, Mode: mode})
}

func (s session) create2(path string, data []byte, mode znode.Mode) step {
	return s.do(wire.OpCreate2, &wire.CreateRequest{
		Path: path, Data: data, ACL: znode.OpenACL, Mode: mode})
}

func (s session) createContainer(path string, mode znode.Mode) step {
	return s.do(wire.OpCreateContainer, &wire.CreateRequest{
		Path: path, Data: null, ACL: znode.OpenACL, Mode: mode})
}

func (s session) createTTL(path string, mode znode.Mode, ttl int64) step {
	return s.do(wire.OpCreateTTL, &wire.CreateTTLRequest{
		Path: path, Data: str("ttl"), ACL: znode.OpenACL, Mode: mode, TTLMillis: ttl})
}

func (s session) delete(path string, version znode.Version) step {
	return s.do(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: version})
}

func (s session) exists(path string, watch bool) step {
	return s.do(wire.OpExists, &wire.ExistsRequest{Path: path, Watch: watch})
}

func (s session) get(path string, watch bool) step {
	return s.do(wire.OpGetData, &wire.GetDataRequest{Path: path, Watch: watch})
}

func (s session) set(path string, data []byte, version znode.Version) step {
	return s.do(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: data, Version: version})
}

func (s session) ls(path string, watch bool) step {
	return s.do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: path, Watch: watch})
}

func (s session) ls2(path string, watch bool) step {
	return s.do(wire.OpGetChildren2, &wire.GetChildrenRequest{Path: path, Watch: watch})
}

func (s session) getACL(path string) step {
	return s.do(wire.OpGetACL, &wire.GetACLRequest{Path: path})
}

func (s session) setACL(path string, acl []znode.ACL, version znode.Version) step {
	return s.do(wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: acl, Version: version})
}

func (s session) auth(scheme, credentials string) step {
	return step{who: string(s), requests: []request{{op: wire.OpAuth, xid: wire.XidAuth,
		body: &wire.AuthRequest{Scheme: scheme, Auth: []byte(credentials)}}}}
}

func (s session) addWatch(path string, mode wire.AddWatchMode) step {
	return s.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: mode})
}

func (s session) checkWatches(path string, t znode.WatcherType) step {
	return s.do(wire.OpCheckWatches, &wire.RemoveWatchesRequest{Path: path, Type: t})
}

func (s session) removeWatches(path string, t znode.WatcherType) step {
	return s.do(wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: path, Type: t})
}

// setWatches is relative to what the session knew when it was dropped.
func (s session) setWatches(data, exist, child []string) step {
	return step{who: string(s), requests: []request{{op: wire.OpSetWatches, since: 1,
		body: &wire.SetWatchesRequest{DataWatches: data, ExistWatches: exist, ChildWatches: child}}}}
}

func (s session) setWatches2(data, exist, child, persistent, recursive []string) step {
	return step{who: string(s), requests: []request{{op: wire.OpSetWatches2, since: 1,
		body: &wire.SetWatches2Request{
			SetWatchesRequest: wire.SetWatchesRequest{
				DataWatches: data, ExistWatches: exist, ChildWatches: child},
			PersistentWatches: persistent, PersistentRecursiveWatches: recursive}}}}
}

func (s session) ephemerals(prefix string) step {
	return s.do(wire.OpGetEphemerals, &wire.GetEphemeralsRequest{PrefixPath: prefix})
}

func (s session) descendants(path string) step {
	return s.do(wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: path})
}

// reconfig takes "-" for what is null.
func (s session) reconfig(joining, leaving, members string, version int64) step {
	text := func(x string) *string {
		if x == "-" {
			return nil
		}
		return &x
	}
	return s.do(wire.OpReconfig, &wire.ReconfigRequest{JoiningServers: text(joining), LeavingServers: text(leaving),
		NewMembers: text(members), CurConfigID: version})
}

// multi takes steps of one request each.
func (s session) multi(steps ...step) step {
	return s.do(wire.OpMulti, &wire.MultiRequest{Ops: ops(steps)})
}

func (s session) multiRead(steps ...step) step {
	return s.do(wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: ops(steps)})
}

func ops(steps []step) (all []wire.MultiOp) {
	for _, x := range steps {
		all = append(all, wire.MultiOp{Type: x.requests[0].op, Request: x.requests[0].body})
	}
	return all
}

// check exists only inside a multi.
func (s session) check(path string, version znode.Version) step {
	return s.do(wire.OpCheck, &wire.CheckRequest{Path: path, Version: version})
}

// null is data that is not there, and empty is data of no bytes.
var (
	null  []byte
	empty = []byte{}
)

func str(s string) []byte { return []byte(s) }

func acl(perms znode.Perms, scheme, id string) []znode.ACL {
	return []znode.ACL{{Perms: perms, ID: znode.ID{Scheme: scheme, ID: id}}}
}
