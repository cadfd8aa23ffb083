// Package backup takes backups of the tree, and restores them.
//
// A Scheduler takes them at intervals, into a directory or through a command, and removes old ones from the directory.
// A backup counts only when it has been restored in memory, and the digests were equal.
//
// One server of the ensemble takes them: the live voter with the lowest id that does not lead; the leader if there is
// no other. Each server finds that out by itself, from the leader's status, at each look. So there is nothing to hand
// over, and a change of server costs at most one backup more (docs/adr/0029).
//
// One goroutine, Run's, does all; while a backup goes to a command, there is one that runs the command, and one that
// restores what the command gets.
//
// A Restorer turns the tree of the ensemble into that of a backup: it checks the file, proposes it in parts, and
// commits it. The state machines collect the parts and compute the new tree (package consensus/state). It starts no
// goroutine: a restore runs on its caller's, and holds Restorer.running, the only lock, throughout.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/supervise"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// lookEvery is how often a server looks whether a backup is due, at least once an interval.
	lookEvery = 30 * time.Second
	// retryAfter is the pause after a failure: a backup costs processor and disk, and what has stopped one, such as a
	// full disk, seldom passes in seconds.
	retryAfter = 5 * time.Minute
	// commandGrace is how long a command has to end, when it must, before it is killed.
	commandGrace = time.Second
	// statusTimeout is how long a look waits for the leader.
	statusTimeout = 3 * time.Second
)

// errNoRoom is why a backup is not taken, which could not be restored.
var errNoRoom = errors.New("there is no room to restore it beside the tree, as the check does: give the server more " +
	"memory, or raise limits.treeBytes")

// Server is what this package needs of *server.Server.
type Server interface {
	Status() consensus.Status
	Snapshot() (*state.Snapshot, znode.Zxid)
	Room(key string) (free, used int64)
	Propose(c *state.Command, w forward.Waiter) error
	Do(ctx context.Context, c *state.Command) (state.Result, error)
}

// Ensemble is what a Scheduler needs of *membership.Ensemble.
type Ensemble interface {
	Status(ctx context.Context) (membership.Status, error)
}

// Config configures a Scheduler. Either Directory or Command is set.
type Config struct {
	ID        state.ServerID // this server's
	Directory string
	Command   string // for /bin/sh; it gets the backup on standard input
	Interval  time.Duration
	Timeout   time.Duration // of one backup
	KeepCount int           // files in the directory; 0: all
	KeepAge   time.Duration // of files in the directory; 0: however old
	Logger    *slog.Logger
}

// Scheduler takes the backups of one server.
type Scheduler struct {
	cfg      Config
	srv      Server
	ensemble Ensemble

	retry        time.Time    // not before; Run's
	ahead        string       // the file of a backup with a later time that the log has named; Run's
	last         atomic.Int64 // when the last good backup was taken, in seconds since the epoch; 0: not known
	made, failed atomic.Int64
	fault        atomic.Pointer[string] // why the last attempt failed; nil: it did not
}

// NewScheduler returns a Scheduler that does nothing before Run.
func NewScheduler(srv Server, e Ensemble, cfg Config) *Scheduler {
	return &Scheduler{cfg: cfg, srv: srv, ensemble: e}
}

// Metrics emits the counters, by the names in the table of package api/metrics.
func (s *Scheduler) Metrics(emit func(name string, value any)) {
	emit("backups_total", s.made.Load())
	emit("backup_failures_total", s.failed.Load())
	emit("backup_last_success_timestamp_seconds", s.last.Load())
}

// Fault returns why the last backup failed; empty if it did not.
func (s *Scheduler) Fault() string {
	if text := s.fault.Load(); text != nil {
		return *text
	}
	return ""
}

// Run takes backups until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	tick := time.NewTicker(min(lookEvery, s.cfg.Interval))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.look(ctx, time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// look takes a backup if one is due and this server is chosen to take it.
func (s *Scheduler) look(ctx context.Context, now time.Time) {
	ensemble := s.srv.Status().Ensemble
	if s.cfg.Directory != "" {
		// Another server may have written there, and this one before its start.
		at, ahead := newest(s.cfg.Directory, ensemble, now, s.cfg.Interval)
		if at.Unix() > s.last.Load() {
			s.last.Store(at.Unix())
		}
		if ahead != "" && ahead != s.ahead {
			s.cfg.Logger.Warn("a backup has a later time than this server's clock, and does not count; "+
				"remove or rename it, or set the clock", "file", ahead)
		}
		s.ahead = ahead
	}
	age := now.Sub(time.Unix(s.last.Load(), 0)) // negative: the clock was set back
	if age >= 0 && age < s.cfg.Interval || now.Before(s.retry) || !s.chosen(ctx) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	zxid, err := s.take(limited, fileName(ensemble, now))
	switch {
	case ctx.Err() != nil: // the server stops
		return
	case err == nil:
		s.made.Add(1)
		s.last.Store(now.Unix())
		s.fault.Store(nil) // last: who sees that all is well finds the counters right
		s.cfg.Logger.Info("backup taken and verified", "zxid", zxid, "took", time.Since(now))
		return
	case limited.Err() != nil:
		err = fmt.Errorf("not done within backup.timeout, %v: %w", s.cfg.Timeout, err)
	}
	text := err.Error()
	s.failed.Add(1)
	s.fault.Store(&text)
	s.retry = now.Add(min(retryAfter, s.cfg.Interval))
	s.cfg.Logger.Error("a scheduled backup failed; it will be tried again", "error", err,
		"last_good", time.Unix(s.last.Load(), 0).UTC())
}

// chosen reports whether this server is the one that takes backups. Without a leader none is.
func (s *Scheduler) chosen(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	all, err := s.ensemble.Status(ctx)
	if err != nil {
		return false
	}
	who := all.Leader
	for _, m := range all.Members {
		if m.Voter && m.Connected && m.ID != all.Leader && (who == all.Leader || m.ID < who) {
			who = m.ID
		}
	}
	return who == s.cfg.ID
}

// take takes one backup.
func (s *Scheduler) take(ctx context.Context, name string) (znode.Zxid, error) {
	if free, used := s.srv.Room(""); free < used {
		return 0, errNoRoom
	}
	frozen, zxid := s.srv.Snapshot()
	defer frozen.Release()
	b := &attempt{Snapshot: frozen, ensemble: s.srv.Status().Ensemble, zxid: zxid, name: name}
	if s.cfg.Directory == "" {
		return zxid, s.toCommand(ctx, b)
	}
	if err := s.toDirectory(ctx, b); err != nil {
		return zxid, err
	}
	if err := prune(s.cfg.Directory, b.ensemble, &s.cfg); err != nil {
		s.cfg.Logger.Warn("old backups were not removed", "error", err)
	}
	return zxid, nil
}

// toCommand hands a backup to the command. The command sees the end of its input only when the backup has been
// verified; before, it is ended.
func (s *Scheduler) toCommand(ctx context.Context, b *attempt) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.runCommand(ctx, b.name, in) }()
	again, check := io.Pipe()
	verified := make(chan error, 1)
	go func() {
		err := b.verify(ctx, again)
		again.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // ends the writes to come
		verified <- err
	}()
	err = b.write(ctx, io.MultiWriter(out, check))
	check.CloseWithError(err)
	if unverified := <-verified; err == nil {
		err = unverified
	}
	if err != nil {
		cancel()
		return errors.Join(<-ended, err, out.Close())
	}
	return errors.Join(out.Close(), <-ended)
}

// runCommand runs the command until it ends, or ctx does. It closes in.
func (s *Scheduler) runCommand(ctx context.Context, name string, in *os.File) error {
	defer in.Close() // a write that waits for the command fails
	code, err := supervise.Run(ctx, &supervise.Command{
		Args: []string{"/bin/sh", "-c", s.cfg.Command}, Env: []string{"ZK_LITE_BACKUP=" + name},
		Grace: commandGrace, OwnGroup: true, Files: [3]*os.File{in, os.Stderr, os.Stderr},
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("backup.command ended with exit code %d", code)
	}
	return err
}

// attempt is a backup that is being taken.
type attempt struct {
	*state.Snapshot
	ensemble [16]byte
	zxid     znode.Zxid
	name     string
}

func (b *attempt) write(ctx context.Context, out io.Writer) error {
	return b.WriteBackup(&writer{ctx, out}, b.ensemble)
}

// verify restores a backup in memory, and compares the digest of that with the one that was computed from the tree.
func (b *attempt) verify(ctx context.Context, in io.Reader) error {
	m, err := state.ReadBackup(&reader{ctx, in})
	switch {
	case err != nil:
		return fmt.Errorf("verifying the backup: %w", err)
	case m.Zxid() != b.zxid:
		return fmt.Errorf("verifying the backup: it has zxid %v, not %v", m.Zxid(), b.zxid)
	}
	return nil
}

// writer and reader end with a context.
type writer struct {
	ctx context.Context
	w   io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
