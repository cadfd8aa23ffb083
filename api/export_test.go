package api

import (
	"net/http"
	"net/netip"

	"github.com/zk-lite/zk-lite/api/admin"
	"github.com/zk-lite/zk-lite/api/rest"
)

// Kill cuts all connections, as the end of the process does.
func (s *Server) Kill() {
	s.stop()
	_ = s.http.Close()
}

// Handler is what answers requests.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Conns is how many connections are open; FillConns has n more of an address than it may have, or fewer.
func (s *Server) Conns() int { return s.open() }
func (s *Server) FillConns(address string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns += n * maxPerAddress
	s.addresses[netip.MustParseAddr(address)] += n * maxPerAddress
}

// Active is how many connections have a request in progress.
func (s *Server) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)
}

// Core is what the requests share.
func (s *Server) Core() *rest.Core { return s.core }

// Routes are all operations.
func Routes() []rest.Route {
	all, _ := routes(nil, nil, nil, admin.Config{})
	return all
}
