package server

import (
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// Expiries lists, on the leader, when the ensemble's sessions would expire if they were
// not heard of any more, in milliseconds since the epoch. Others do not know: there it is
// empty.
func (s *Server) Expiries() map[int64][]znode.SessionID {
	all := map[int64][]znode.SessionID{}
	s.leader.mu.Lock()
	defer s.leader.mu.Unlock()
	if s.leader.clock == nil {
		return all
	}
	s.leader.clock.Deadlines(func(at time.Time, ids []znode.SessionID) {
		all[at.UnixMilli()] = ids
	})
	return all
}
