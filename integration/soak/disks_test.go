//go:build soak

package soak_test

import (
	"syscall"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

func diskFaults() []fault {
	return []fault{
		{"power cut of all", true, func(n *nemesis) { n.e.PowerCut(); n.last(0, 1000); n.e.StartAll() }},
		{"power cut of a server", true, func(n *nemesis) { n.powerCut(n.any()) }},
		{"power cut of the leader", true, func(n *nemesis) { n.powerCut(n.e.Leader()) }},
		{"power cut of one after the other", true, (*nemesis).powerCuts},
		{"slow disk of a server", true, func(n *nemesis) { n.slow(n.any()) }},
		{"slow disks of all", true, func(n *nemesis) { n.slow(n.e.Servers()...) }},
		{"hanging disk of a server", true, func(n *nemesis) { n.hanging(n.any()) }},
		{"hanging disk of the leader", true, func(n *nemesis) { n.hanging(n.e.Leader()) }},
		{"failed sync of a server", true, func(n *nemesis) { n.failedSync(n.any()) }},
		{"failed sync of the leader", true, func(n *nemesis) { n.failedSync(n.e.Leader()) }},
		{"full disk of a server", true, func(n *nemesis) { n.full(n.any()) }},
		{"full disk of the leader", true, func(n *nemesis) { n.full(n.e.Leader()) }},
	}
}

func (n *nemesis) powerCut(s *cluster.Server) {
	s.PowerCut()
	n.last(0, 2000)
	s.Start()
}

func (n *nemesis) powerCuts() {
	for _, s := range n.e.Servers() {
		s.PowerCut()
		n.last(0, 500)
	}
	n.e.StartAll()
}

// slow has every sync take longer for a while.
func (n *nemesis) slow(servers ...*cluster.Server) {
	all := slowdisk.Profiles()
	p := all[n.rng.IntN(len(all))]
	for _, s := range servers {
		s.Disk.SetFault(disk.Slow(p, n.rng.Uint64()))
	}
	n.last(500, 4000)
	for _, s := range servers {
		s.Disk.SetFault(nil)
	}
}

// hanging has everything that changes the disk wait until the fault is over.
func (n *nemesis) hanging(s *cluster.Server) {
	over := make(chan struct{})
	s.Disk.SetFault(func(disk.Op, string) syscall.Errno { <-over; return 0 })
	n.last(500, 8000)
	s.Disk.SetFault(nil)
	close(over)
}

// failedSync makes one sync of a server's log fail. The server must exit, and is restarted.
func (n *nemesis) failedSync(s *cluster.Server) {
	end := s.FailLogSync()
	n.last(500, 2000)
	if !end() {
		return // it had nothing to write
	}
	if s.WaitEnd() == nil {
		n.t.Errorf("the guarantee %q is broken: server %d ends well after a failed sync",
			"Durability", s.ID)
	}
	s.Start()
}

// full has the disk take nothing new for a while. A server that is being started on a full
// disk ends, so all must serve.
func (n *nemesis) full(s *cluster.Server) {
	n.e.WaitServing()
	s.Disk.SetFault(func(op disk.Op, path string) syscall.Errno {
		if op == disk.OpWrite || op == disk.OpName {
			return syscall.ENOSPC
		}
		return 0
	})
	n.last(500, 4000)
	s.Disk.SetFault(nil)
}
