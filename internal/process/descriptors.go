package process

import (
	"sync"
	"sync/atomic"
)

const (
	// ownDescriptors are kept from all clients: for the connections of other servers, which may be 128
	// before they identify themselves, for those to them, for the log, snapshots and backups,
	// and for four-letter words.
	ownDescriptors = 256
	// httpDescriptors are reserved for the HTTP port, which serves health checks. It may have
	// more.
	httpDescriptors = 64
	// maxDescriptors is the largest limit that counts, for systems that have none.
	maxDescriptors = 1 << 30
)

// DescriptorLimit names the limit in logs.
const DescriptorLimit = "RLIMIT_NOFILE"

// Descriptors shares out the file descriptors of the process, so that clients leave some to other servers, to
// files, and to health checks. It counts connections; it neither accepts nor closes any.
type Descriptors struct {
	capacity int
	// Clients is the share of the ZooKeeper port, HTTP that of the HTTP port.
	Clients, HTTP *DescriptorShare

	refused atomic.Int64
	mu      sync.Mutex // protects the shares' used
}

// DescriptorShare is one port's part: some descriptors that the other port does not get,
// and of the rest as many as are free. Its methods may be called from any goroutine; those
// of a nil DescriptorShare refuse nothing.
type DescriptorShare struct {
	pool *Descriptors
	kept int

	used int // protected by pool.mu
}

// OwnDescriptors divides the limit of this process.
func OwnDescriptors() *Descriptors {
	limit, err := MaxDescriptors()
	if err != nil {
		limit = maxDescriptors // the system will refuse any above its limit
	}
	return NewDescriptors(limit)
}

// NewDescriptors divides a limit. Small ones are divided in proportion.
func NewDescriptors(limit int) *Descriptors {
	p := &Descriptors{capacity: limit - min(ownDescriptors, limit/4)}
	p.Clients = &DescriptorShare{pool: p, kept: p.capacity / 2}
	p.HTTP = &DescriptorShare{pool: p, kept: min(httpDescriptors, limit/16)}
	return p
}

// MostClients is how many ZooKeeper clients a limit leaves room for.
func MostClients(limit int) int {
	p := NewDescriptors(limit)
	return p.capacity - p.HTTP.kept
}

// Take counts a connection that has been accepted, and reports whether it may stay. Either way
// Return must be called when it is closed.
func (s *DescriptorShare) Take() bool {
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
func (s *DescriptorShare) Return() {
	if s == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.used--
}

// Refuse counts a client that was disconnected because Take refused it.
func (s *DescriptorShare) Refuse() { s.pool.refused.Add(1) }

// Refused is how many have been counted, at all ports.
func (p *Descriptors) Refused() int64 { return p.refused.Load() }
