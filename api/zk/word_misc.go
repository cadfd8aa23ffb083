package zk

import (
	"encoding/binary"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// ruok says that the process answers, and no more.
func (a *answer) ruok() { a.WriteString("imok") }

// isro says whether writes are possible; null is neither.
func (a *answer) isro() {
	if a.serving {
		a.WriteString("rw")
	} else {
		a.WriteString("null")
	}
}

// gtmk prints the trace mask, which is kept and has no effect.
func (a *answer) gtmk() { a.WriteString(strconv.FormatInt(a.listener.trace.Load(), 10)) }

// stmk sets it.
func (a *answer) stmk() {
	a.listener.trace.Store(int64(binary.BigEndian.Uint64(a.argument)))
	a.gtmk()
}

// hash lists digests of the state.
func (a *answer) hash() {
	if a.listener.cfg.Digests == nil {
		return
	}
	for _, x := range a.listener.cfg.Digests() {
		a.line("%x: %d", x.Zxid, int64(x.Value))
	}
}

// dump lists the ensemble's sessions, in the form of ZooKeeper's followers;
// the ephemerals of each; and this server's connections.
func (a *answer) dump() {
	type owner struct {
		id    znode.SessionID
		paths []string
	}
	var sessions []session.Session
	var owners []owner
	a.look(func(v *server.View) {
		sessions = v.Machine().Sessions().Clone()
		tree := v.Tree()
		tree.EphemeralOwners(func(id znode.SessionID, _ int) {
			owners = append(owners, owner{id, tree.Ephemerals(id, "")})
		})
	})
	slices.SortFunc(sessions, func(x, y session.Session) int { return compare(x.ID, y.ID) })
	slices.SortFunc(owners, func(x, y owner) int { return compare(x.id, y.id) })
	a.line("SessionTracker dump:")
	a.line("Global Sessions(%d):", len(sessions))
	for _, s := range sessions {
		a.line("%s\t%dms", s.ID, s.Timeout.Milliseconds())
	}
	a.line("ephemeral nodes dump:")
	a.line("Sessions with Ephemerals (%d):", len(owners))
	for _, o := range owners {
		a.line("%s:", o.id)
		slices.Sort(o.paths)
		for _, path := range o.paths {
			a.line("\t%s", path)
		}
	}
	conns := a.listener.snapshot()
	a.line("Connections dump:")
	a.line("Connections Sets (%d)/(%d):", min(1, len(conns)), len(conns))
	for _, c := range conns {
		a.line("\tip: /%s sessionId: %s", c.remote, c.session())
	}
}

func compare(x, y znode.SessionID) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// memoryLimit is the Go runtime's soft limit in bytes.
func memoryLimit() int64 { return debug.SetMemoryLimit(-1) }
