package server

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/znode"
)

// warnEvery is how often the log says that writes are refused.
const warnEvery = time.Minute

// room decides whether there is room for what a command adds to the state. Without it one client could fill
// the memory of all servers, which the kernel would then kill, again after every start.
//
// The server that accepts a command decides, before it is in the log: what is in the log is carried out by all
// servers alike, so replicas cannot differ. Each server has the smallest limit of all voters from the leader.
// What other servers have accepted and this one has not applied is not counted; the limit leaves room for it
// (docs/adr/0018).
type room struct {
	bytes    atomic.Int64 // Machine.Memory after the last entry
	refused  atomic.Int64 // commands for which there was no room
	longACLs atomic.Int64 // commands with an ACL that is too long
	last     atomic.Int64 // when the last one was, in nanoseconds since Server.started; 0: never
	warned   atomic.Int64 // when the log last said so
	repeats  repeats.Filter
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
	m := Memory{Bytes: s.room.bytes.Load(), Refused: s.room.refused.Load(), LongACL: s.room.longACLs.Load()}
	m.Limit, _ = s.consensus.TreeMemory()
	m.Since = time.Since(s.started) - time.Duration(s.room.last.Load())
	return m
}

// admit reports why c may not be proposed: ErrBadArguments if it is too long, ErrInvalidACL for a list that is,
// ErrSystem if there is no room.
// It must not be called with the view lock held.
func (s *Server) admit(c *state.Command) znode.Error {
	if size := c.MaxSize(); size > state.MaxCommand {
		const refused = "refusing a write that is too long for the log, whatever jute.maxbuffer is"
		if pass, leftOut := s.room.repeats.Pass(refused); pass {
			s.logger.Warn(refused, "session", c.Session, "bytes", size, "limit", state.MaxCommand,
				"left_out", leftOut)
		}
		return znode.ErrBadArguments
	}
	if c.HasLongACL() {
		keeps := false
		s.View(func(v *View) { keeps = v.machine.KeepsACL(c) })
		if !keeps {
			s.room.longACLs.Add(1)
			return znode.ErrInvalidACL
		}
	}
	if !s.hasRoom(c) {
		return znode.ErrSystem // which all clients know; see refused
	}
	return znode.OK
}

func (s *Server) hasRoom(c *state.Command) bool {
	growth := c.MaxGrowth()
	if growth == 0 {
		return true
	}
	limit, pending := s.consensus.TreeMemory()
	if limit == 0 || s.room.bytes.Load()+pending+growth <= limit {
		return true
	}
	var have int64
	s.View(func(v *View) { have, growth = v.machine.Memory(), v.machine.Growth(c) })
	if growth <= 0 || have+pending+growth <= limit {
		return true
	}
	s.room.refused.Add(1)
	now := int64(time.Since(s.started))
	s.room.last.Store(now)
	if warned := s.room.warned.Load(); (warned == 0 || now-warned >= int64(warnEvery)) &&
		s.room.warned.CompareAndSwap(warned, now) {
		s.logger.Warn("refusing writes that add to the tree, which has no room; delete znodes, or give all servers "+
			"more memory, or raise limits.treeBytes", "bytes", have, "pending", pending, "limit", limit)
	}
	return false
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

// refused is the result of a command that was refused. Its code is one that all clients know: kazoo 2.8
// and Java 3.4 break on those that came later, QUOTAEXCEEDED among them (docs/protocol.md).
func refused(op state.Op, code znode.Error, zxid znode.Zxid) *state.Result {
	return &state.Result{Op: op, Code: code, Zxid: zxid}
}

// refusedWrite answers a refused write in its place among its connection's requests.
type refusedWrite struct {
	Op
	kind state.Op
	code znode.Error
}

func (w refusedWrite) Read(v *View) { w.Done(v, refused(w.kind, w.code, v.Zxid())) }
