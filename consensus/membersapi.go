package consensus

import (
	"context"
	"net"
	"time"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// AddServer is membership.Ensemble's.
func (n *Node) AddServer(ctx context.Context, m state.Member) error {
	return n.ensemble.AddServer(ctx, m)
}

// RemoveServer is membership.Ensemble's.
func (n *Node) RemoveServer(ctx context.Context, id state.ServerID, force bool) error {
	return n.ensemble.RemoveServer(ctx, id, force)
}

// TransferTo is membership.Ensemble's.
func (n *Node) TransferTo(ctx context.Context, id state.ServerID) error {
	return n.ensemble.TransferTo(ctx, id)
}

// Transfer is membership.Ensemble's.
func (n *Node) Transfer() error { return n.ensemble.Transfer() }

// CheckStop is membership.Ensemble's. The ensemble goes on without a halted server already.
func (n *Node) CheckStop(ctx context.Context) error {
	if n.halted.Load() != nil {
		return nil
	}
	return n.ensemble.CheckStop(ctx)
}

// Members is membership.Ensemble's.
func (n *Node) Members() map[state.ServerID]state.Member { return n.ensemble.Members() }

// EnsembleStatus is membership.Ensemble's Status.
func (n *Node) EnsembleStatus(ctx context.Context) (EnsembleStatus, error) {
	return n.ensemble.Status(ctx)
}

// NewToken is membership.Ensemble's.
func (n *Node) NewToken(ctx context.Context, id state.ServerID) (secret string, until time.Time, err error) {
	return n.ensemble.NewToken(ctx, id)
}

// DialHTTP connects to another member's HTTP server, through its peer port.
func (n *Node) DialHTTP(ctx context.Context, to state.ServerID) (net.Conn, error) {
	return n.mux.Dial(ctx, mux.KindHTTP, membership.AddressOf(to), uint64(to))
}

// ListenHTTP returns the listener of what other members dial by DialHTTP. It is called once.
func (n *Node) ListenHTTP() net.Listener { return n.mux.ListenHTTP() }
