package dns

import (
	"net"
	"net/netip"
)

// For tests: the answer to a message, a connection's questions, and limits.
const (
	PerSecond     = perSecond
	MaxPerAddress = maxPerAddress
	MaxUDP        = maxUDP
	MaxMembers    = maxMembers
)

func (s *Server) Answer(question []byte, from netip.Addr, tcp bool) []byte {
	return s.answer(question, from, tcp)
}

func (s *Server) Converse(c net.Conn) { s.converse(c, netip.Addr{}) }
