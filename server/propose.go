package server

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// Propose sends a command that is the server's own. One that is not admitted
// gets its result at once, and is not sent.
func (s *Server) Propose(c *state.Command, w forward.Waiter) error {
	return s.admission.propose(c, w, forward.From{})
}

// Do proposes a command and waits for its result, of which it returns a copy
// that no one else changes. When ctx ends first, the error is ctx's and the outcome is
// unknown, unless it had ended before the call: then nothing is sent.
func (s *Server) Do(ctx context.Context, c *state.Command) (state.Result, error) {
	if err := ctx.Err(); err != nil {
		return state.Result{}, err // nothing has been sent
	}
	w := &await{server: s, begun: time.Now(), done: make(chan struct{})}
	sent := *c
	if err := s.Source.sessionFor(ctx, &sent); err != nil {
		return state.Result{}, err
	}
	from, done := s.Callers.from(ctx, c.Identities)
	defer done()
	if err := s.admission.propose(&sent, w, from); err != nil {
		return state.Result{}, err
	}
	select {
	case <-w.done:
		if trace := insight.TraceOf(ctx); trace != nil {
			trace.Add(&w.stages, w.index, w.term)
		}
		return w.result, w.err
	case <-ctx.Done():
		return state.Result{}, ctx.Err()
	}
}

// await is a Waiter for one result.
type await struct {
	server *Server
	begun  time.Time
	result state.Result
	err    error
	done   chan struct{}

	stages      insight.Stages
	index, term uint64
}

func (w *await) Applied(r *state.Result) {
	if w.server.Source.follows(r, w) {
		return
	}
	w.result = *r
	w.result.Multi = append([]state.OpResult(nil), r.Multi...)
	if r.Session != nil {
		x := *r.Session // the table's own will change
		w.result.Session = &x
	}
	times := w.server.current.times
	w.stages = insight.StagesOf(w.begun, times, time.Now())
	if times != nil {
		w.index, w.term = times.Index, times.Term
	}
	close(w.done)
}

func (w *await) Lost() {
	w.err = znode.ErrConnectionLoss
	close(w.done)
}

// nobody is the waiter of a command whose result no one needs.
type nobody struct{}

func (nobody) Applied(*state.Result) {}
func (nobody) Lost()                 {}

// admission decides whether a command may be proposed: whether there is room for what it adds to the state. Without
// it one client could fill the memory of all servers, which the kernel would then kill, again after every start.
//
// The server that accepts a command decides, before it is in the log: all servers carry out what is in the log
// alike, so replicas cannot differ. Each server has the smallest limit of all voters from the leader.
// What other servers have accepted and this one has not applied is not counted; the limit leaves room for it
// (docs/adr/0018).
type admission struct {
	srv      *Server
	bytes    atomic.Int64 // Machine.Memory after the last entry
	noRoom   atomic.Int64 // commands for which there was no room
	longACLs atomic.Int64 // commands with an ACL that is too long
	last     atomic.Int64 // when the last one was, in nanoseconds since Server.started; 0: never
	repeats  repeats.Filter
}

// propose is Server.Propose, for a client.
func (a *admission) propose(c *state.Command, w forward.Waiter, from forward.From) error {
	c.Flags |= a.srv.flags
	if code := a.check(c); code != znode.OK {
		a.srv.View(func(*View) { w.Applied(refused(c.Op, code, 0)) })
		return nil
	}
	return a.srv.consensus.Propose(c, w, from)
}

// check reports why c may not be proposed: ErrBadArguments if it is too long, ErrInvalidACL for a list that is,
// ErrSystem if there is no room. It must not be called with the view lock held.
func (a *admission) check(c *state.Command) znode.Error {
	switch c.Op {
	case state.OpReconfig, state.OpPurge:
		return a.checkLevel(c)
	case state.OpBranch:
		if code := a.checkLevel(c); code != znode.OK {
			return code
		}
	}
	if size := c.MaxSize(); size > state.MaxCommand {
		const refused = "refusing a write that is too long for the log, whatever jute.maxbuffer is"
		if pass, leftOut := a.repeats.Pass(refused); pass {
			a.srv.logger.Warn(refused, "session", c.Session, "bytes", size, "limit", state.MaxCommand,
				"left_out", leftOut)
		}
		return znode.ErrBadArguments
	}
	if c.HasLongACL() {
		keeps := false
		a.srv.View(func(v *View) { keeps = v.machine.KeepsACL(c) })
		if !keeps {
			a.longACLs.Add(1)
			return znode.ErrInvalidACL
		}
	}
	if !a.hasRoom(c) {
		return znode.ErrSystem // which all clients know; see refused
	}
	return znode.OK
}

// checkLevel reports ErrUnimplemented below the ensemble's level that has c.
func (a *admission) checkLevel(c *state.Command) (code znode.Error) {
	a.srv.View(func(v *View) {
		if c.CheckLevel(v.machine.Level()) != nil {
			code = znode.ErrUnimplemented
		}
	})
	return code
}

func (a *admission) hasRoom(c *state.Command) bool {
	growth := c.MaxGrowth()
	if growth == 0 {
		return true
	}
	limit, pending := a.srv.consensus.TreeMemory()
	pending += int64(a.srv.local.Len()) * state.SessionMemory
	if limit == 0 || a.bytes.Load()+pending+growth <= limit {
		return true
	}
	var have int64
	a.srv.View(func(v *View) { have, growth = v.machine.Memory(), v.machine.Growth(c) })
	if growth <= 0 || have+pending+growth <= limit {
		return true
	}
	a.noRoom.Add(1)
	a.last.Store(int64(time.Since(a.srv.started)))
	if pass, _ := a.repeats.Pass("no room"); pass {
		a.srv.logger.Warn("refusing writes that add to the tree, which has no room; delete znodes, or give all "+
			"servers more memory, or raise limits.treeBytes", "bytes", have, "pending", pending, "limit", limit)
	}
	return false
}

// refused returns the result of a command that was not admitted. Its code is one that all clients know: kazoo 2.8
// and Java 3.4 break on those that came later, QUOTAEXCEEDED among them (docs/protocol.md).
func refused(op state.Op, code znode.Error, zxid znode.Zxid) *state.Result {
	return &state.Result{Op: op, Code: code, Zxid: zxid}
}

// Memory is how much of the heap the state takes here, and may take.
type Memory struct {
	Bytes   int64         // about
	Limit   int64         // the smallest of the voters and this server; 0: there is none
	Refused int64         // writes that were refused here since the start
	Since   time.Duration // how long ago the last one was
	LongACL int64         // writes that were refused because an ACL was too long
}

// Memory returns how much of the heap the state takes here, and may take.
func (s *Server) Memory() Memory {
	a := &s.admission
	m := Memory{Bytes: a.bytes.Load(), Refused: a.noRoom.Load(), LongACL: a.longACLs.Load()}
	m.Limit, _ = s.consensus.TreeMemory()
	m.Since = time.Since(s.started) - time.Duration(a.last.Load())
	return m
}

// Room returns by how many bytes the state may grow, and how many it takes now. There is no limit for a command with a
// key whose result is known.
func (s *Server) Room(key string) (free, used int64) {
	limit, pending := s.consensus.TreeMemory()
	s.View(func(v *View) {
		used = v.machine.Memory()
		free = limit - used - pending
		if limit == 0 || key != "" && v.machine.Answered(key) {
			free = unlimited
		}
	})
	return free, used
}

// unlimited is more than any tree takes, and can be added to.
const unlimited = math.MaxInt64 / 2
