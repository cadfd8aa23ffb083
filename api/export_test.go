package api

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
)

// Kill cuts all connections, as the end of the process does.
func (s *Server) Kill() {
	s.stop()
	_ = s.http.Close()
}

// Handler is what answers requests.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Conns is how many connections are open; FillConns opens more than there may be.
func (s *Server) Conns() int64      { return s.conns.Load() }
func (s *Server) FillConns(n int64) { s.conns.Add(n * maxConns) }

// Core is what the requests share.
func (s *Server) Core() *rest.Core { return s.core }

// Routes are all operations.
func Routes() []rest.Route {
	all, _ := routes(nil, Backend{}, Config{})
	return all
}
