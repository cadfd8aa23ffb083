package consensus

import (
	"context"
	"fmt"
	"net"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// peers knows where the other servers are, and by what they prove who they are.
type peers struct {
	cfg     *Config
	applied *membership.Applied
}

var _ mux.Guard = peers{}

// dial connects to a server by its id: at the address with which it was added to the running
// ensemble, or at that in this server's own configuration.
func (p peers) dial(ctx context.Context, addr string) (net.Conn, error) {
	at := p.hostPort(addr)
	if at == "" {
		return nil, fmt.Errorf("server %s is not in this server's configuration, and was not added to the ensemble",
			addr)
	}
	return p.cfg.Dial(ctx, at)
}

// hostPort is where a server is that has this address in raft's configuration; empty: not known here.
func (p peers) hostPort(addr string) string {
	for id, m := range p.applied.Members() {
		if membership.AddressOf(id) == addr && m.Addr != "" {
			return m.Addr
		}
	}
	for _, s := range p.cfg.Servers {
		if membership.AddressOf(s.ID) == addr {
			return s.Addr
		}
	}
	return ""
}

// Verify implements mux.Guard by Config.Verify for a server's id. A server that is not known here may have been added
// while this one was down, and be the leader that would tell it. Keys on control connections are membership's affair.
func (p peers) Verify(c net.Conn, kind mux.Kind, from uint64) error {
	if from >= mux.NoServer {
		return nil
	}
	if kind != mux.KindControl {
		if err := p.cfg.Keys.CheckKey(c, state.ServerID(from)); err != nil {
			return err
		}
	}
	if p.cfg.Verify == nil {
		return nil
	}
	host, _, _ := net.SplitHostPort(p.hostPort(membership.AddressOf(state.ServerID(from)))) // or empty
	return p.cfg.Verify(c, state.ServerID(from), host)
}

// Secure implements mux.Guard: it puts TLS on a connection to the server with an address of raft's. Keys on control
// connections are checked where it is known what they are for (membership).
func (p peers) Secure(ctx context.Context, c net.Conn, kind mux.Kind, addr string) (net.Conn, error) {
	return p.cfg.Keys.Client(ctx, c, membership.ServerOf(addr), kind == mux.KindControl)
}

// Stranger implements mux.Guard.
func (p peers) Stranger(c net.Conn) bool { return !p.cfg.Keys.Bound(c) }

// streams is forward's network.
type streams struct{ mux *mux.Mux }

// Dial implements forward.Network.
func (s streams) Dial(ctx context.Context, to state.ServerID) (net.Conn, error) {
	return s.mux.Dial(ctx, mux.KindStream, membership.AddressOf(to), uint64(to))
}

// Accept implements forward.Network.
func (s streams) Accept() (net.Conn, state.ServerID, error) {
	conn, err := s.mux.Accept(mux.KindStream)
	if err != nil {
		return nil, 0, err
	}
	return conn, state.ServerID(conn.ServerID()), nil
}
