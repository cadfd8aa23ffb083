package app

import (
	"context"

	"github.com/zk-lite/zk-lite/server/backups"
)

// takeBackups starts the scheduled backups, if there are any.
func (s *Server) takeBackups(o *Options) {
	c := &o.Settings.Backup
	if c.Directory == "" && c.Command == "" {
		return
	}
	if c.Directory != "" {
		s.dirs = append(s.dirs, c.Directory)
	}
	s.backups = backups.New(s.server, backups.Config{
		Directory: c.Directory, Command: c.Command, Interval: c.Interval, Timeout: c.Timeout,
		KeepCount: c.KeepCount, KeepAge: c.KeepAge, Logger: o.Logger,
	})
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
