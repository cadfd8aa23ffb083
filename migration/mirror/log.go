package mirror

import (
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// LogOf returns the Log of a server.
func LogOf(s *server.Server) Log { return serverLog{s} }

type serverLog struct{ *server.Server }

func (l serverLog) Leads() (term uint64) {
	if s := l.Status(); s.Role == consensus.RoleLeader || s.Role == consensus.RoleStandalone {
		return s.Term
	}
	return 0
}

func (l serverLog) Mirror() (now state.Mirror, on bool) {
	l.View(func(v *server.View) { now, on = v.Machine().Mirror() })
	return now, on
}

func (l serverLog) Relays(term, after uint64, visit func(number uint64, c *state.Command) bool) {
	l.View(func(v *server.View) { v.Machine().Relays(term, after, visit) })
}

func (l serverLog) Timeout(id znode.SessionID) (timeout time.Duration, ok bool) {
	l.View(func(v *server.View) {
		if s := v.Machine().Sessions().Get(id); s != nil {
			timeout, ok = s.Timeout, true
		}
	})
	return timeout, ok
}

func (l serverLog) Held() (h Held) {
	h.Term = l.Status().Term
	l.View(func(v *server.View) {
		m := v.Machine()
		h.Zxid, h.Digest = m.Zxid(), m.ZooKeeperDigest()
		h.Znodes, h.Sessions = m.Tree().Size().Znodes, m.Sessions().Len()
	})
	return h
}

func (l serverLog) Ensemble() [16]byte { return l.Status().Ensemble }
