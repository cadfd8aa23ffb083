package restore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// upload proposes the parts and the commit, and returns the commit's result.
func (r *Restorer) upload(
	ctx context.Context, f *backupFile, o *Options,
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

// uploadParts proposes the parts, at most window of them at a time. It reports whether any was sent.
// A part whose result is lost may have been applied all the same: the next one, or
// the commit, will report it.
func (r *Restorer) uploadParts(ctx context.Context, f *backupFile, id uint64) (sent bool, err error) {
	results := make(chan znode.Error, window)
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
		if inFlight == window {
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
