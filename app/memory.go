package app

import "cmp"

// leaveRoom sets the limits that follow from the memory unless they are set. Without either a limit is 0: the default
// of its package, and no limit for the tree.
func (o *Options) leaveRoom() {
	if o.Memory == 0 {
		return
	}
	const (
		leastPending, mostPending = 1 << 20, 64 << 20
		program, leastTree        = 32 << 20, 4 << 20
	)
	c, part := &o.Settings, o.Memory/16
	if c.Consensus.MaxPendingBytes == 0 {
		c.Consensus.MaxPendingBytes = int(min(max(part, leastPending), mostPending))
	}
	if c.Consensus.TreeLimit == 0 {
		// As much again is for what the collector has yet to find; the rest is for the program, requests, replies,
		// watches, a snapshot and the restart.
		c.Consensus.TreeLimit = max((o.Memory-program)/5*2, leastTree)
	}
	c.Server.WatchBytes = cmp.Or(c.Server.WatchBytes, part)
	c.ZooKeeper.OutboxTotal = cmp.Or(c.ZooKeeper.OutboxTotal, part)
}
