package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// Bounds of a restore.
const (
	// restoreWindow is how many parts are on their way at a time: enough to keep the
	// log busy, and little beside what clients may have pending.
	restoreWindow = 8
	// abortTimeout is how long the others are told that an upload is over. When they
	// are not reached they find out by themselves (state.UploadIdle).
	abortTimeout = 5 * time.Second
	// MaxBackup bounds a backup's file, in bytes.
	MaxBackup = state.MaxBackup
)

// The errors of Restore. After all of them nothing has changed.
var (
	// ErrBackup says that what came is no backup, or a damaged one; the error says
	// what is wrong.
	ErrBackup = errors.New("not a backup that can be restored")
	// ErrBackupTooLarge says that it has more than MaxBackup bytes.
	ErrBackupTooLarge = fmt.Errorf("a backup has at most %d bytes", int64(MaxBackup))
	// ErrNotBare says that there are znodes, and RestoreOptions.Replace is not set.
	ErrNotBare = errors.New("there are znodes that a restore would replace")
	// ErrRestoring says that there is another restore under way.
	ErrRestoring = errors.New("another restore is under way")
	// ErrKeyMismatch says that the key belongs to another request.
	ErrKeyMismatch = errors.New("the key belongs to another request")
)

// UnknownError says that a restore may or may not have happened, or may happen yet.
type UnknownError struct{ Err error }

func (e *UnknownError) Error() string {
	return "whether the restore has happened is unknown: " + e.Err.Error()
}

// Unwrap says why.
func (e *UnknownError) Unwrap() error { return e.Err }

// RestoreOptions say how to restore.
type RestoreOptions struct {
	Replace    bool // also when there are znodes besides the system's
	DryRun     bool // only say what would change
	Key        string
	Identities []znode.ID
}

// Restored is what a restore has changed.
type Restored struct {
	state.Restored
	Zxid     znode.Zxid // of the transaction; of a dry run, of the state it looked at
	Backup   znode.Zxid // of the last transaction in the backup
	Repeated bool       // it happened when the key came for the first time
}

// Restore turns the tree into that of a backup, which Snapshot.Write has made, as one
// transaction. The whole backup is read and checked before anything of it gets into
// the log; it is kept in memory, as it will be on every server.
//
// Errors: those above, those of in, ctx's. Unless the error is an UnknownError,
// nothing has changed and nothing will.
func (s *Server) Restore(ctx context.Context, in io.Reader, o RestoreOptions) (Restored, error) {
	if !s.restoring.TryLock() {
		return Restored{}, fmt.Errorf("%w at this server", ErrRestoring)
	}
	defer s.restoring.Unlock()
	if !o.Replace && !o.DryRun && o.Key == "" && !s.bare() {
		return Restored{}, ErrNotBare // before it is sent in vain
	}
	file := &backupFile{}
	backup, err := file.read(in)
	if err != nil {
		return Restored{}, err
	}
	done := Restored{Backup: backup.Zxid()}
	if o.DryRun {
		frozen, zxid := s.Snapshot()
		defer frozen.Release()
		done.Zxid = zxid
		done.Restored, err = frozen.Preview(backup)
		return done, err
	}
	backup = nil // its memory is needed: the machine will make one of its own
	r, err := s.upload(ctx, file, &o)
	if err != nil {
		return Restored{}, err
	}
	done.Restored, done.Zxid, done.Repeated = r.Restored, r.Zxid, r.Key == state.KeyRepeated
	s.logger.Info("backup restored", "backup", done.Backup, "zxid", done.Zxid,
		"created", done.Created, "changed", done.Changed, "deleted", done.Deleted)
	return done, nil
}

func (s *Server) bare() (bare bool) {
	s.View(func(v *View) { bare = v.machine.Bare() })
	return bare
}

// backupFile is a backup as it came, in parts that the log takes.
type backupFile struct {
	parts [][]byte
	size  int64
	sum   xxhash.Digest
}

// read takes the file in while it is decoded.
func (f *backupFile) read(in io.Reader) (*state.Backup, error) {
	f.sum.Reset()
	source := &faultReader{in: in}
	backup, err := state.ReadBackup(io.TeeReader(source, f))
	switch {
	case source.err != nil:
		return nil, fmt.Errorf("receiving the backup: %w", source.err)
	case f.size > MaxBackup:
		return nil, ErrBackupTooLarge
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrBackup, err)
	}
	return backup, nil
}

// faultReader remembers its source's own error, to tell it from damage.
type faultReader struct {
	in  io.Reader
	err error
}

func (r *faultReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Write implements io.Writer: it adds to the parts.
func (f *backupFile) Write(p []byte) (int, error) {
	if f.size += int64(len(p)); f.size > MaxBackup {
		return 0, ErrBackupTooLarge
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

// upload proposes the parts and the commit, and returns the commit's result.
func (s *Server) upload(
	ctx context.Context, f *backupFile, o *RestoreOptions,
) (state.Result, error) {
	id := rand.Uint64()
	sent, err := s.uploadParts(ctx, f, id)
	if err != nil {
		if sent {
			s.abortUpload(id)
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
		s.abortUpload(id)
		return state.Result{}, err
	}
	r, err := s.Do(ctx, c)
	if errors.Is(err, znode.ErrConnectionLoss) && o.Key != "" {
		r, err = s.Do(ctx, c) // it was applied; the key brings the result
	}
	switch {
	case errors.Is(err, znode.ErrConnectionLoss) || errors.Is(err, ctx.Err()) && err != nil:
		return r, &UnknownError{err}
	case err != nil:
		return r, err // it was not sent
	case r.Key == state.KeyMismatch:
		return r, ErrKeyMismatch
	}
	return r, uploadError(r.Code)
}

// uploadParts proposes the parts, so many at a time. It reports whether any was sent.
// A part whose result is lost may have been applied all the same: the next one, or
// the commit, will tell.
func (s *Server) uploadParts(ctx context.Context, f *backupFile, id uint64) (sent bool, err error) {
	results := make(chan znode.Error, restoreWindow)
	flying := 0
	collect := func() error {
		select {
		case code := <-results:
			flying--
			return uploadError(code)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for n, part := range f.parts {
		if flying == restoreWindow {
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
		if err := s.Propose(c, partWaiter(results)); err != nil {
			return n > 0, err
		}
		f.parts[n] = nil // it was copied
		flying++
	}
	for flying > 0 {
		if err := collect(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// partWaiter takes the results of parts. There is room for all that are on their way.
type partWaiter chan<- znode.Error

func (w partWaiter) Applied(r *state.Result) { w <- r.Code }
func (w partWaiter) Lost()                   { w <- znode.OK }

// uploadError explains the codes of state.RestoreCommand.
func uploadError(code znode.Error) error {
	switch code {
	case znode.OK:
		return nil
	case znode.ErrThrottled:
		return fmt.Errorf("%w at another server", ErrRestoring)
	case znode.ErrDataInconsistency:
		return fmt.Errorf("%w, and has taken this one's place", ErrRestoring)
	case znode.ErrNotEmpty:
		return ErrNotBare
	case znode.ErrBadArguments:
		return ErrBackupTooLarge
	case znode.ErrMarshalling:
		return fmt.Errorf("%w: it did not arrive as it was sent", ErrBackup)
	}
	return code
}

// abortUpload frees the memory that the parts take everywhere.
func (s *Server) abortUpload(id uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	_, err := s.Do(ctx, &state.Command{
		Op: state.OpRestore, Restore: state.RestoreCommand{Step: state.RestoreAbort, Upload: id},
	})
	if err != nil {
		s.logger.Warn("an upload that has failed stays in memory until the next", "error", err)
	}
}
