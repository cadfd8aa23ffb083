package peer

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// raftLayer is the mux as raft.NetworkTransport wants to see it.
type raftLayer struct{ m *Mux }

// StreamLayer gives the raft connections of the mux to a raft.NetworkTransport. There is one
// stream layer for a mux; closing it ends all raft connections for good and nothing else.
// NewTransport calls it; nobody else needs to.
func (m *Mux) StreamLayer() raft.StreamLayer { return raftLayer{m} }

// Accept waits for the next inbound raft connection.
func (l raftLayer) Accept() (net.Conn, error) {
	c, err := l.m.next(l.m.raftClosed, KindRaft)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the raft connections of both directions, those being dialled included.
func (l raftLayer) Close() error {
	l.m.closeRaft()
	l.m.shutRaft(doorClosed)
	return nil
}

// Addr is the advertised address, which raft takes as its own.
func (l raftLayer) Addr() net.Addr { return l.m.Addr() }

// Dial makes a connection for the NetworkTransport.
func (l raftLayer) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return l.m.dialMember(KindRaft, addr, timeout)
}

// dialMember connects to the server that raft's configuration has at addr, and to no other that
// may answer there by now.
func (m *Mux) dialMember(
	kind Kind, addr raft.ServerAddress, timeout time.Duration,
) (net.Conn, error) {
	var want uint64
	if f := m.raftID.Load(); f != nil {
		want = (*f)(string(addr))
	}
	ctx := m.raftClosed
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return m.Dial(ctx, kind, string(addr), want)
}
