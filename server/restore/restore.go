// Package restore turns the tree of an ensemble into that of a backup: it checks the
// file, proposes it in parts, and commits it.
//
// The state machines collect the parts and compute the new tree (package
// consensus/state); nothing of that is here. It starts no goroutine: a restore runs on
// its caller's, and Restorer.running, the only lock, is held by it throughout.
package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// Bounds of a restore.
const (
	// window is how many parts are in flight at a time: enough to keep the log busy,
	// and few beside what clients may have pending.
	window = 8
	// abortTimeout bounds the attempt to end a failed upload on all servers. Those that
	// it does not reach end it by themselves (state.UploadIdle).
	abortTimeout = 5 * time.Second
	// MaxBackup bounds a backup's file, in bytes.
	MaxBackup = state.MaxBackup
)

// The errors of Restore. After all of them nothing has changed.
var (
	// ErrNotBackup means that the file is no backup, or a damaged one; the error
	// describes the damage.
	ErrNotBackup = errors.New("not a backup that can be restored")
	// ErrTooLarge means that the file has more than MaxBackup bytes.
	ErrTooLarge = fmt.Errorf("a backup has at most %d bytes", int64(MaxBackup))
	// ErrTreeNotEmpty means that there are znodes, and Options.Replace is not set.
	ErrTreeNotEmpty = errors.New("there are znodes that a restore would replace")
	// ErrInProgress means that there is another restore under way.
	ErrInProgress = errors.New("another restore is under way")
	// ErrNoRoom means that the present tree and that of the backup, which every server holds for a
	// moment, are together larger than the tree may be.
	ErrNoRoom = errors.New("the servers have no room for the tree of the backup beside the present one")
	// ErrForeign means that the backup is of another ensemble, and Options.OtherEnsemble is not set.
	ErrForeign = errors.New("the backup is of another ensemble")
	// ErrKeyMismatch means that the key belongs to another request.
	ErrKeyMismatch = errors.New("the key belongs to another request")
)

// UnknownError means that a restore may have happened, or not, or may happen yet.
type UnknownError struct{ Err error }

func (e *UnknownError) Error() string {
	return "whether the restore has happened is unknown: " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *UnknownError) Unwrap() error { return e.Err }

// Options are those of one restore.
type Options struct {
	Replace bool // also when there are znodes besides the system's
	DryRun  bool // only report what would change
	// OtherEnsemble takes also the backup of another ensemble.
	OtherEnsemble bool
	Key           string
	Identities    []znode.ID
}

// Result is what a restore has changed.
type Result struct {
	backup.Changes
	Zxid     znode.Zxid // of the transaction; of a dry run, of the state that was compared
	Backup   znode.Zxid // of the last transaction in the backup
	Repeated bool       // it happened when the key came for the first time
}

// Server is what a Restorer needs of *server.Server.
type Server interface {
	Propose(c *state.Command, w forward.Waiter) error
	Do(ctx context.Context, c *state.Command) (state.Result, error)
	Snapshot() (*state.Snapshot, znode.Zxid)
	Room(key string) (bytes int64)
	Status() consensus.Status
}

// Restorer does the restores of one server, one at a time.
type Restorer struct {
	srv     Server
	logger  *slog.Logger
	running sync.Mutex
}

// New returns the Restorer of a server.
func New(srv Server, logger *slog.Logger) *Restorer {
	return &Restorer{srv: srv, logger: logger}
}

// Restore turns the tree into that of a backup, which state.Snapshot.Write has made,
// as one transaction. The whole backup is read and checked before anything of it gets
// into the log; it is kept in memory, as it will be on every server.
//
// Errors: those above, those of in, ctx's. Unless the error is an UnknownError,
// nothing has changed and nothing will.
func (r *Restorer) Restore(ctx context.Context, in io.Reader, o Options) (Result, error) {
	if !r.running.TryLock() {
		return Result{}, fmt.Errorf("%w at this server", ErrInProgress)
	}
	defer r.running.Unlock()
	if !o.Replace && !o.DryRun && o.Key == "" && !r.empty() {
		return Result{}, refuse(in, ErrTreeNotEmpty) // before it is decoded in vain
	}
	file := &backupFile{own: r.srv.Status().Ensemble}
	if o.OtherEnsemble {
		file.own = [16]byte{}
	}
	room := r.srv.Room(o.Key)
	b, err := file.read(in, room)
	if err != nil {
		return Result{}, err
	}
	done := Result{Backup: b.Zxid()}
	if o.DryRun {
		s, zxid := r.srv.Snapshot()
		defer s.Release()
		done.Zxid = zxid
		done.Changes, err = s.Preview(b)
		return done, err
	}
	if b.Memory() > room {
		return Result{}, ErrNoRoom
	}
	b = nil // its memory is needed: the machine will make one of its own
	x, err := r.upload(ctx, file, &o)
	if err != nil {
		return Result{}, err
	}
	done.Changes, done.Zxid, done.Repeated = x.Restored, x.Zxid, x.Key == state.KeyRepeated
	r.logger.Info("backup restored", "backup", done.Backup, "zxid", done.Zxid,
		"created", done.Created, "changed", done.Changed, "deleted", done.Deleted)
	return done, nil
}

func (r *Restorer) empty() bool {
	s, _ := r.srv.Snapshot()
	defer s.Release()
	return s.Empty()
}
