package consensus

import (
	"sync"
	"time"
)

// proposals are the figures of this server's leadership (ZooKeeper's BufferStats and
// Leader.getUptime).
type proposals struct {
	mu                      sync.Mutex // protects the fields below
	last, smallest, largest int64      // bytes; 0: none yet
	since                   time.Time  // when the leadership began
}

// begin starts all figures afresh, with a leadership.
func (p *proposals) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.smallest, p.largest, p.since = 0, 0, 0, time.Now()
}

// count counts an entry, none of which is empty.
func (p *proposals) count(bytes int) {
	n := int64(bytes)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.smallest == 0 || n < p.smallest {
		p.smallest = n
	}
	p.last, p.largest = n, max(p.largest, n)
}

// uptime is for how long this server has led, if it does.
func (p *proposals) uptime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return 0
	}
	return time.Since(p.since)
}

// ProposalSizes returns the bytes of the last, the smallest and the largest entry that this
// server has proposed since it began to lead, or since ResetProposals; -1 before the first.
func (n *Node) ProposalSizes() (last, smallest, largest int64) {
	p := &n.proposals
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == 0 {
		return -1, -1, -1
	}
	return p.last, p.smallest, p.largest
}

// ResetProposals starts the figures of ProposalSizes afresh.
func (n *Node) ResetProposals() {
	p := &n.proposals
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.smallest, p.largest = 0, 0, 0
}
