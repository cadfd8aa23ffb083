package server

import (
	"context"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// Cluster is what can be asked about the ensemble, and changed; the methods are
// those of consensus.Node.
type Cluster interface {
	Members() map[state.ServerID]Member
	AddServer(ctx context.Context, m Member) error
	RemoveServer(ctx context.Context, id state.ServerID, force bool) error
	TransferTo(ctx context.Context, id state.ServerID) error
	Level() state.Level
	RaiseLevel(ctx context.Context, to state.Level) error
	CheckStop(ctx context.Context) error
	EnsembleStatus(ctx context.Context) (EnsembleStatus, error)
	NewToken(ctx context.Context, id state.ServerID) (secret string, until time.Time, err error)
}

// Member is what the ensemble has published of a server.
type Member = state.Member

// EnsembleStatus is the ensemble as its leader sees it.
type EnsembleStatus = consensus.EnsembleStatus

// MemberStatus is the status of a server as its leader has it.
type MemberStatus = consensus.MemberStatus

// The errors of what follows.
var (
	ErrNoMember   = consensus.ErrNoMember
	ErrStandalone = consensus.ErrStandalone
	ErrTooFew     = consensus.ErrTooFew
	ErrNoLeader   = consensus.ErrNoLeader
	ErrElsewhere  = consensus.ErrElsewhere
	ErrLevel      = consensus.ErrLevel
	ErrNoTokens   = consensus.ErrNoTokens
)

// Members returns the ensemble's servers.
func (s *Server) Members() map[state.ServerID]Member { return s.consensus.Members() }

// EnsembleStatus asks the leader for the status of all servers; see consensus.Node.
func (s *Server) EnsembleStatus(ctx context.Context) (EnsembleStatus, error) {
	return s.consensus.EnsembleStatus(ctx)
}

// AddServer takes a server into the running ensemble; see consensus.Node.
func (s *Server) AddServer(ctx context.Context, m Member) error { return s.consensus.AddServer(ctx, m) }

// RemoveServer takes a server out of the ensemble; see consensus.Node.
func (s *Server) RemoveServer(ctx context.Context, id state.ServerID, force bool) error {
	return s.consensus.RemoveServer(ctx, id, force)
}

// TransferTo hands leadership to a voter, 0 for any; see consensus.Node.
func (s *Server) TransferTo(ctx context.Context, id state.ServerID) error {
	return s.consensus.TransferTo(ctx, id)
}

// Level returns the ensemble's feature level; 0: it has none yet.
func (s *Server) Level() state.Level { return s.consensus.Level() }

// RaiseLevel raises the ensemble's feature level; see consensus.Node.
func (s *Server) RaiseLevel(ctx context.Context, to state.Level) error {
	return s.consensus.RaiseLevel(ctx, to)
}

// NewToken makes a one-time token with which a member joins with a new key; see consensus.Node.
func (s *Server) NewToken(ctx context.Context, id state.ServerID) (secret string, until time.Time, err error) {
	return s.consensus.NewToken(ctx, id)
}

// Drain makes this server ready to be stopped: it takes no new clients, hands over
// leadership, and sends its clients away, who go on elsewhere with their sessions.
// When it returns nil, the ensemble goes on without this server. With ErrTooFew it
// would not, and nothing has been done.
func (s *Server) Drain(ctx context.Context) error {
	if err := s.consensus.CheckStop(ctx); err != nil {
		return err
	}
	s.draining.Store(true)
	if s.Status().Role == RoleLeader {
		if err := s.consensus.TransferTo(ctx, state.NoServer); err != nil {
			s.draining.Store(false)
			return err
		}
	}
	s.conns.disconnectAll(ReasonStopping)
	s.logger.Info("drained: no new clients are taken, and this server can be stopped")
	return nil
}

// Undrain takes clients again.
func (s *Server) Undrain() { s.draining.Store(false) }

// Draining reports whether Drain was called last.
func (s *Server) Draining() bool { return s.draining.Load() }
