package mirror

import (
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
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

func (l serverLog) Ensemble() [16]byte { return l.Status().Ensemble }
