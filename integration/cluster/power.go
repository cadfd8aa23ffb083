package cluster

import (
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster/disk"
)

// NewDisks mounts a disk for each of n servers, see Options.Disks. It needs root and
// /dev/fuse.
func NewDisks(t testing.TB, n int, seed uint64) []*disk.Disk {
	t.Helper()
	disks := make([]*disk.Disk, n)
	for i := range disks {
		disks[i] = disk.New(t, seed*1000+uint64(i))
	}
	return disks
}

// PowerCut ends a server that has a Disk with SIGKILL and takes from its disk what was not
// synced, or a part of it.
func (s *Server) PowerCut() disk.Loss {
	s.e.t.Helper()
	if s.Running() {
		s.Kill()
	}
	return s.Disk.PowerCut()
}

// PowerCut is that of the whole room: all servers at the same moment.
func (e *Ensemble) PowerCut() (all disk.Loss) {
	e.t.Helper()
	e.KillAll()
	for _, s := range e.servers {
		l := s.Disk.PowerCut()
		all.Pages += l.Pages
		all.Names += l.Names
	}
	return all
}
