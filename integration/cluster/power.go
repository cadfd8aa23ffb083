package cluster

import (
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster/disk"
)

// NewDisks mounts a disk for each of n servers, see Options.Disks. It needs root and
// /dev/fuse.
func NewDisks(t testing.TB, n int, seed uint64) []*disk.Disk {
	t.Helper()
	return newDisks(t, n, seed, disk.New)
}

// NewExt4Disks is NewDisks with an ext4 on each.
func NewExt4Disks(t testing.TB, n int, seed uint64) []*disk.Disk {
	t.Helper()
	return newDisks(t, n, seed, disk.NewExt4)
}

func newDisks(t testing.TB, n int, seed uint64, one func(testing.TB, uint64) *disk.Disk) []*disk.Disk {
	t.Helper()
	disks := make([]*disk.Disk, n)
	for i := range disks {
		disks[i] = one(t, seed*1000+uint64(i))
	}
	return disks
}

// PowerCut ends a server that has a Disk with SIGKILL and takes from its disk what was not
// synced, or a part of it.
func (s *Server) PowerCut() disk.Loss {
	s.e.t.Helper()
	s.Disk.PowerOff()
	if s.Running() {
		s.Kill()
	}
	l, err := s.Disk.PowerCut()
	if err != nil {
		s.e.t.Fatalf("after a power cut of server %d: %v", s.ID, err)
	}
	return l
}

// PowerCut is that of the whole room: all servers at the same moment.
func (e *Ensemble) PowerCut() (all disk.Loss) {
	e.t.Helper()
	for _, s := range e.servers {
		s.Disk.PowerOff()
	}
	e.KillAll()
	for _, s := range e.servers {
		l := s.PowerCut()
		all.Pages += l.Pages
		all.Names += l.Names
	}
	return all
}

// FailLogSync has one sync of the server's log fail, once; it is a zk-lite, which must end
// then. The result ends that, and reports whether a sync has failed. A sync that only
// prepares a segment for later is let through: without that segment the server goes on.
func (s *Server) FailLogSync() (end func() (failed bool)) {
	var mu sync.Mutex // protects the fields below
	before, over, failed := map[string]bool{}, false, false
	s.Disk.SetFault(func(op disk.Op, path string) syscall.Errno {
		inLog := filepath.Base(filepath.Dir(path)) == "raftlog" && filepath.Ext(path) == ".seg"
		if op != disk.OpSync || !inLog {
			return 0
		}
		mu.Lock()
		defer mu.Unlock()
		again := before[path]
		before[path] = true
		if over || failed || !again {
			return 0
		}
		failed = true
		return syscall.EIO
	})
	return func() bool {
		s.Disk.SetFault(nil)
		mu.Lock()
		defer mu.Unlock()
		over = true
		return failed
	}
}
