package transport

import (
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// streamLayer is the mux as raft.NetworkTransport wants to see it.
type streamLayer struct{ m *mux.Mux }

// Accept waits for the next inbound raft connection.
func (l streamLayer) Accept() (net.Conn, error) {
	c, err := l.m.Accept(mux.KindRaft)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the raft connections of both directions, those being dialled included.
func (l streamLayer) Close() error {
	l.m.CloseRaft()
	return nil
}

// Addr is the advertised address, which raft takes as its own.
func (l streamLayer) Addr() net.Addr { return l.m.Addr() }

// Dial makes a connection for the NetworkTransport.
func (l streamLayer) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	c, err := l.m.DialMember(mux.KindRaft, string(addr), timeout)
	if err != nil {
		return nil, err
	}
	return c, nil
}
