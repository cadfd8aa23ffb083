package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/api/admin"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/server/backup"
)

// leastRoom is what a disk should have: a few segments of the log, and snapshots.
const leastRoom = 256 << 20

// checks are those of the disks and the backups.
func (s *Server) checks() (all []admin.Check) {
	space := admin.Check{Name: "disk_space", OK: true}
	for _, dir := range s.dirs {
		if n, err := process.FreeBytes(dir); err == nil && n < leastRoom {
			space.OK = false
			space.Detail += fmt.Sprintf("%s has room for %d bytes, and should have %d; ", dir, n, leastRoom)
		}
	}
	space.Detail = strings.TrimSuffix(space.Detail, "; ")
	if all = append(all, space); s.backups != nil {
		fault := s.backups.Fault()
		all = append(all, admin.Check{Name: "backup", OK: fault == "", Detail: fault})
	}
	return all
}

// takeBackups starts the scheduled backups, if there are any.
func (s *Server) takeBackups(o *Options) {
	cfg := o.Settings.Backup
	if cfg.Directory == "" && cfg.Command == "" {
		return
	}
	if cfg.Directory != "" {
		s.dirs = append(s.dirs, cfg.Directory)
	}
	cfg.ID, cfg.Logger = s.server.Config().ID, o.Logger
	s.backups = backup.NewScheduler(s.server, s.consensus.Ensemble(), cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.backups.Run(ctx)
	}()
	s.stopBackups = func() <-chan struct{} {
		cancel()
		return done
	}
}

// endBackups ends a backup that is being taken; ctx bounds the wait for a disk that hangs.
func (s *Server) endBackups(ctx context.Context) {
	if s.backups == nil {
		return
	}
	select {
	case <-s.stopBackups():
	case <-ctx.Done():
	}
}
