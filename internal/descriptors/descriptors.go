// Package descriptors shares out the file descriptors of the process, so that clients
// leave some to other servers, to files, and to whoever asks how this server is.
//
// It counts connections. It neither accepts nor closes any, and starts no goroutine.
package descriptors

import (
	"sync"
	"sync/atomic"
)

const (
	// own are kept from all clients: for the connections of other servers, which may be 128
	// before they say who they are, for those to them, for the log, snapshots and backups,
	// and for four-letter words.
	own = 256
	// http are kept for the HTTP port, where health is asked for. It may have more.
	http = 64
	// most is the largest limit that counts, for systems that have none.
	most = 1 << 30
)

// Limited names the limit in logs.
const Limited = "RLIMIT_NOFILE"

// Pool is what a limit leaves to clients.
type Pool struct {
	capacity int
	// Clients is the share of the ZooKeeper port, HTTP that of the HTTP port.
	Clients, HTTP *Share

	refused atomic.Int64
	mu      sync.Mutex // protects the shares' used
}

// Share is one port's part of a Pool: some descriptors that the other port does not get,
// and of the rest as many as are free. Its methods may be called from any goroutine; those
// of a nil Share refuse nothing.
type Share struct {
	pool *Pool
	kept int

	used int // protected by pool.mu
}

// ForProcess divides the limit of the process.
func ForProcess() *Pool {
	limit, err := Limit()
	if err != nil {
		limit = most // the system will say when there are too many
	}
	return NewPool(limit)
}

// NewPool divides a limit. Small ones are divided in proportion.
func NewPool(limit int) *Pool {
	p := &Pool{capacity: limit - min(own, limit/4)}
	p.Clients = &Share{pool: p, kept: p.capacity / 2}
	p.HTTP = &Share{pool: p, kept: min(http, limit/16)}
	return p
}

// MostClients is how many ZooKeeper clients a limit leaves room for.
func MostClients(limit int) int {
	p := NewPool(limit)
	return p.capacity - p.HTTP.kept
}

// Take counts a connection that has been accepted, and reports whether it may stay. Either way
// Return must be called when it is closed.
func (s *Share) Take() bool {
	if s == nil {
		return true
	}
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	s.used++
	all := max(p.Clients.used, p.Clients.kept) + max(p.HTTP.used, p.HTTP.kept)
	return s.used <= s.kept || all <= p.capacity
}

// Return counts the end of a connection.
func (s *Share) Return() {
	if s == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.used--
}

// Refuse counts a client that had to go because Take has said no.
func (s *Share) Refuse() { s.pool.refused.Add(1) }

// Refused is how many have been counted, at all ports.
func (p *Pool) Refused() int64 { return p.refused.Load() }
