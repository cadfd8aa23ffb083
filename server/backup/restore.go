package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// Bounds of a restore.
const (
	// maxInFlight is how many parts are in flight at a time: enough to keep the log busy,
	// and few beside what clients may have pending.
	maxInFlight = 8
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
	// ErrTreeNotEmpty means that there are znodes, and RestoreOptions.Replace is not set.
	ErrTreeNotEmpty = errors.New("there are znodes that a restore would replace")
	// ErrInProgress means that there is another restore under way.
	ErrInProgress = errors.New("another restore is under way")
	// ErrNoRoom means that the present tree and that of the backup, which every server holds for a
	// moment, are together larger than the tree may be.
	ErrNoRoom = errors.New("the servers have no room for the tree of the backup beside the present one")
	// ErrForeign means that the backup is of another ensemble, and RestoreOptions.OtherEnsemble is not set.
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

// RestoreOptions are those of one restore.
type RestoreOptions struct {
	Replace bool // also when there are znodes besides the system's
	DryRun  bool // only report what would change
	// OtherEnsemble takes also the backup of another ensemble.
	OtherEnsemble bool
	Key           string
	Identities    []znode.ID
}

// Restored is what a restore has changed.
type Restored struct {
	backup.Changes
	Zxid     znode.Zxid // of the transaction; of a dry run, of the state that was compared
	Backup   znode.Zxid // of the last transaction in the backup
	Repeated bool       // it happened when the key came for the first time
}

// Restorer does the restores of one server, one at a time.
type Restorer struct {
	srv     Server
	logger  *slog.Logger
	running sync.Mutex
}

// NewRestorer returns the Restorer of a server.
func NewRestorer(srv Server, logger *slog.Logger) *Restorer {
	return &Restorer{srv: srv, logger: logger}
}

// Restore turns the tree into that of a backup, which state.Snapshot.Write has made,
// as one transaction. The whole backup is read and checked before anything of it gets
// into the log; it is kept in memory, as it will be on every server.
//
// Errors: those above, those of in, ctx's. Unless the error is an UnknownError,
// nothing has changed and nothing will.
func (r *Restorer) Restore(ctx context.Context, in io.Reader, o RestoreOptions) (Restored, error) {
	if !r.running.TryLock() {
		return Restored{}, fmt.Errorf("%w at this server", ErrInProgress)
	}
	defer r.running.Unlock()
	if !o.Replace && !o.DryRun && o.Key == "" && !r.empty() {
		return Restored{}, refuse(in, ErrTreeNotEmpty) // before it is decoded in vain
	}
	file := &backupFile{own: r.srv.Status().Ensemble}
	if o.OtherEnsemble {
		file.own = [16]byte{}
	}
	room, _ := r.srv.Room(o.Key)
	b, err := file.read(in, room)
	if err != nil {
		return Restored{}, err
	}
	done := Restored{Backup: b.Zxid()}
	if o.DryRun {
		s, zxid := r.srv.Snapshot()
		defer s.Release()
		done.Zxid = zxid
		done.Changes, err = s.Preview(b)
		return done, err
	}
	if b.Memory() > room {
		return Restored{}, ErrNoRoom
	}
	b = nil // its memory is needed: the machine will make one of its own
	x, err := r.upload(ctx, file, &o)
	if err != nil {
		return Restored{}, err
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

// upload proposes the parts and the commit, and returns the commit's result.
func (r *Restorer) upload(
	ctx context.Context, f *backupFile, o *RestoreOptions,
) (state.Result, error) {
	id := rand.Uint64()
	sent, err := r.uploadParts(ctx, f, id)
	if err != nil {
		if sent {
			r.abortUpload(id)
		}
		return state.Result{}, err
	}
	c := &state.Command{
		Op: state.OpRestore, Identities: o.Identities, Restore: state.RestoreCommand{
			Step: state.RestoreCommit, Upload: id, Part: uint64(len(f.parts)), Sum: f.sum.Sum64(),
			Replace: o.Replace,
		},
	}
	if o.Key != "" {
		c.Flags, c.Key = state.FlagKeyed, o.Key
	}
	if err := ctx.Err(); err != nil {
		r.abortUpload(id)
		return state.Result{}, err
	}
	x, err := r.srv.Do(ctx, c)
	if errors.Is(err, znode.ErrConnectionLoss) && o.Key != "" {
		x, err = r.srv.Do(ctx, c) // it was applied; the key brings the result
	}
	switch {
	case errors.Is(err, znode.ErrConnectionLoss) || errors.Is(err, ctx.Err()) && err != nil:
		return x, &UnknownError{err}
	case err != nil:
		return x, err // it was not sent
	case x.Key == state.KeyMismatch:
		return x, ErrKeyMismatch
	}
	return x, uploadError(x.Code)
}

// uploadParts proposes the parts, at most maxInFlight of them at a time. It reports whether any was sent.
// A part whose result is lost may have been applied all the same: the next one, or
// the commit, will report it.
func (r *Restorer) uploadParts(ctx context.Context, f *backupFile, id uint64) (sent bool, err error) {
	results := make(chan znode.Error, maxInFlight)
	inFlight := 0
	collect := func() error {
		select {
		case code := <-results:
			inFlight--
			return uploadError(code)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for n, part := range f.parts {
		if inFlight == maxInFlight {
			if err := collect(); err != nil {
				return true, err
			}
		}
		if err := ctx.Err(); err != nil {
			return n > 0, err
		}
		c := &state.Command{Op: state.OpRestore, Data: part, Restore: state.RestoreCommand{
			Upload: id, Part: uint64(n),
		}}
		if err := r.srv.Propose(c, partWaiter(results)); err != nil {
			return n > 0, err
		}
		f.parts[n] = nil // it was copied
		inFlight++
	}
	for inFlight > 0 {
		if err := collect(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// partWaiter takes the results of parts. There is room for all in flight.
type partWaiter chan<- znode.Error

func (w partWaiter) Applied(r *state.Result) { w <- r.Code }
func (w partWaiter) Lost()                   { w <- znode.OK }

// uploadError translates the codes of state.RestoreCommand.
func uploadError(code znode.Error) error {
	switch code {
	case znode.OK:
		return nil
	case znode.ErrThrottled:
		return fmt.Errorf("%w at another server", ErrInProgress)
	case znode.ErrDataInconsistency:
		return fmt.Errorf("%w, and has taken this one's place", ErrInProgress)
	case znode.ErrNotEmpty:
		return ErrTreeNotEmpty
	case znode.ErrBadArguments:
		return ErrTooLarge
	case znode.ErrMarshalling:
		return fmt.Errorf("%w: it did not arrive as it was sent", ErrNotBackup)
	}
	return code
}

// abortUpload frees the memory that the parts take everywhere.
func (r *Restorer) abortUpload(id uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	_, err := r.srv.Do(ctx, &state.Command{
		Op: state.OpRestore, Restore: state.RestoreCommand{Step: state.RestoreAbort, Upload: id},
	})
	if err != nil {
		r.logger.Warn("could not end a failed upload of a backup; the servers keep its parts until the next upload",
			"error", err)
	}
}

// backupFile is a backup as it came, in parts that the log takes.
type backupFile struct {
	own   [16]byte // the ensemble that it has to be of, if it names one; zero: any
	parts [][]byte
	size  int64
	sum   xxhash.Digest
}

// besideTree is what a backup may have beside its tree, in bytes: sessions and idempotency keys, which are left out.
const besideTree = 32 << 20

// read reads and decodes the file at the same time; room bounds the memory of its tree.
func (f *backupFile) read(in io.Reader, room int64) (*backup.Backup, error) {
	f.sum.Reset()
	source := &sourceReader{in: in}
	buffered := bufio.NewReader(source)
	head, _ := buffered.Peek(state.BackupHead) // a shorter file fails below
	ensemble, err := state.BackupEnsemble(head)
	switch {
	case source.err != nil:
	case err != nil:
		return nil, refuse(buffered, fmt.Errorf("%w: %w", ErrNotBackup, err))
	case ensemble != f.own && f.own != [16]byte{} && ensemble != [16]byte{}:
		return nil, refuse(buffered, fmt.Errorf("%w: %x, and this is %x", ErrForeign, ensemble, f.own))
	}
	// What a tree takes is more than what it is decoded from.
	b, err := state.ReadBackupWithin(io.TeeReader(buffered, f), max(room, 0)+besideTree)
	switch {
	case source.err != nil:
		return nil, fmt.Errorf("receiving the backup: %w", source.err)
	case f.size > MaxBackup:
		return nil, ErrTooLarge
	case errors.Is(err, state.ErrDecodedTooLarge):
		return nil, refuse(buffered, ErrNoRoom)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotBackup, err)
	}
	return b, nil
}

// refuse reads the rest, and returns err: a client that has not yet sent its whole request would not get the answer.
func refuse(in io.Reader, err error) error {
	_, _ = io.Copy(io.Discard, io.LimitReader(in, MaxBackup)) // err counts
	return err
}

// sourceReader keeps the error of its source, to distinguish it from damage.
type sourceReader struct {
	in  io.Reader
	err error
}

func (r *sourceReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Write implements io.Writer: it adds to the parts.
func (f *backupFile) Write(p []byte) (int, error) {
	if f.size += int64(len(p)); f.size > MaxBackup {
		return 0, ErrTooLarge
	}
	_, _ = f.sum.Write(p) // never fails
	for left := p; len(left) > 0; {
		last := len(f.parts) - 1
		if last < 0 || len(f.parts[last]) == state.MaxBackupPart {
			f.parts = append(f.parts, make([]byte, 0, state.MaxBackupPart))
			last++
		}
		n := min(len(left), state.MaxBackupPart-len(f.parts[last]))
		f.parts[last] = append(f.parts[last], left[:n]...)
		left = left[n:]
	}
	return len(p), nil
}
