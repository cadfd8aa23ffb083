package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// snapshots sends and restores backups.
type snapshots struct {
	backups Backups

	sending      sync.Mutex // held while a snapshot is sent
	sent, failed atomic.Int64
}

// get streams the whole state as it is at one moment: a backup, in the format
// of this server's own snapshots (zstd, with a digest at its end).
//
// The state continues to change meanwhile. That costs copies, so there is one such stream
// at a time.
func (h *snapshots) get(q *rest.Request) error {
	if !h.sending.TryLock() {
		return rest.TooMany(10, "another snapshot is being sent already")
	}
	defer h.sending.Unlock()
	frozen, zxid := h.backups.Snapshot()
	defer frozen.Release()
	q.SetZxid(zxid)
	header := q.W.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="zk-lite-%s.snapshot"`, zxid))
	header.Set("Cache-Control", "no-store")
	q.Begin(http.StatusOK)
	if q.HTTP.Method == http.MethodHead {
		return nil
	}
	if err := frozen.WriteBackup(&download{q}, q.Core.Server.Status().Ensemble); err != nil {
		h.failed.Add(1)
		q.Core.Config.Logger.Info("a snapshot was not delivered", "client", q.Address, "error", err)
		// net/http's way to cut the answer off, so that it does not pass for a whole one.
		panic(http.ErrAbortHandler)
	}
	h.sent.Add(1)
	return nil
}

// download writes to a client that must continue to read, and stops when the server
// does.
type download struct{ q *rest.Request }

func (w *download) Write(p []byte) (int, error) {
	if w.q.Core.Stopping.Err() != nil {
		return 0, rest.ErrStopping
	}
	_ = http.NewResponseController(w.q.W).SetWriteDeadline(time.Now().Add(rest.WriteTimeout))
	return w.q.Write(p)
}

// restoreTimeout is how long a restore may take altogether: 4 MB a second would do for
// the largest.
const restoreTimeout = 10 * time.Minute

// restore turns the tree into that of a backup, as one transaction.
func (h *snapshots) restore(q *rest.Request) error {
	o := backup.RestoreOptions{Key: q.Key, Identities: q.IDs}
	var err error
	if o.Replace, err = q.Query.Flag("replace"); err != nil {
		return err
	}
	if o.DryRun, err = q.Query.Flag("dry_run"); err != nil {
		return err
	}
	if o.OtherEnsemble, err = q.Query.Flag("other_ensemble"); err != nil {
		return err
	}
	if !q.Core.Server.Serving() {
		return q.Core.NotServing()
	}
	if q.HTTP.ContentLength > backup.MaxBackup {
		return restoreProblem(q, backup.ErrTooLarge)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.HTTP.Context()), restoreTimeout)
	defer cancel()
	defer context.AfterFunc(q.Core.Stopping, cancel)()
	done, err := h.backups.Restore(ctx, &backupBody{q}, o)
	if err != nil {
		if q.Core.Stopping.Err() != nil {
			q.Core.Config.Logger.Info("a restore was cut off by this server's stop", "error", err)
		}
		return restoreProblem(q, err)
	}
	if !o.DryRun {
		q.W.Header().Set(rest.HeaderConsistency, rest.ConsistencyLinearizable)
	}
	if done.Repeated {
		q.W.Header().Set(rest.HeaderReplayed, "true")
	}
	q.SetZxid(done.Zxid)
	return q.Answer(http.StatusOK, body.Restored{
		Zxid: done.Zxid.String(), Backup: done.Backup.String(), DryRun: o.DryRun,
		Created: done.Created, Changed: done.Changed, Deleted: done.Deleted,
		Kept: done.Kept, Skipped: done.Skipped,
	})
}

// backupBody is the request's body, which may be large but must not pause for long.
type backupBody struct{ q *rest.Request }

func (b *backupBody) Read(p []byte) (int, error) {
	if b.q.Core.Stopping.Err() != nil {
		return 0, rest.ErrStopping
	}
	control := http.NewResponseController(b.q.W)
	_ = control.SetReadDeadline(time.Now().Add(rest.BodyTimeout))
	n, err := b.q.HTTP.Body.Read(p)
	if errors.Is(err, io.EOF) {
		_ = control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// restoreProblem explains why nothing was restored, or that this is not known.
func restoreProblem(q *rest.Request, err error) error {
	var unknown *backup.UnknownError
	p := &rest.Problem{
		Status: http.StatusServiceUnavailable, Code: znode.ErrConnectionLoss, RetryAfter: 1,
		Title: "not restored", Detail: err.Error() + "; nothing was changed", Hint: "try again",
	}
	switch {
	case errors.As(err, &unknown):
		p.Status, p.Code, p.RetryAfter = http.StatusGatewayTimeout, znode.ErrOperationTimeout, 0
		p.Title, p.Detail = "outcome unknown", err.Error()
		p.Hint = "restoring the same backup again changes only what was written since; " +
			"with dry_run=true it says what is different"
		if q.Key != "" {
			p.Hint = "try again with the same " + rest.HeaderKey + ": it will happen once"
		}
	case errors.Is(err, backup.ErrNotBackup):
		p.Status, p.Code, p.RetryAfter = http.StatusBadRequest, znode.ErrBadArguments, 0
		p.Param, p.Detail = "body", "body: "+err.Error()+"; nothing was changed"
		p.Hint = "send the file as GET /v1/snapshot has sent it: curl --data-binary @file"
	case errors.Is(err, backup.ErrTooLarge):
		p.Status, p.Code, p.RetryAfter = http.StatusRequestEntityTooLarge, znode.OK, 0
		p.Title, p.Hint = "body too large", "delete what is not needed, and take another backup"
	case errors.Is(err, backup.ErrForeign):
		p.Status, p.Code, p.RetryAfter = http.StatusConflict, znode.ErrBadArguments, 0
		p.Title = "a backup of another ensemble"
		p.Hint = "if it is the right one all the same, as after zk-lite recover, other_ensemble=true restores it"
	case errors.Is(err, backup.ErrTreeNotEmpty):
		p.Status, p.Code, p.RetryAfter = http.StatusConflict, znode.ErrNotEmpty, 0
		p.Title = "the tree is not empty"
		p.Hint = "replace=true restores nevertheless: it changes and deletes what is not as in " +
			"the backup; dry_run=true says how much that is"
	case errors.Is(err, backup.ErrNoRoom), errors.Is(err, znode.ErrSystem):
		p.Status, p.Code, p.RetryAfter = http.StatusInsufficientStorage, znode.ErrSystem, 0
		p.Title, p.Hint = "no room", "delete what the restore would replace, or raise limits.treeBytes on all servers"
	case errors.Is(err, backup.ErrInProgress):
		return rest.TooMany(10, "%v; this request has changed nothing", err)
	case errors.Is(err, backup.ErrKeyMismatch):
		return rest.KeyMismatch()
	case errors.Is(err, znode.ErrNotReadOnly): // a mirror
		return znode.ErrNotReadOnly
	case errors.Is(err, os.ErrDeadlineExceeded): // of the connection, not the context's
		p.Status, p.Code, p.RetryAfter = http.StatusRequestTimeout, znode.OK, 0
		p.Title = "the body came too slowly"
		p.Detail = fmt.Sprintf("nothing came for %v; nothing was changed", rest.BodyTimeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		p.Status, p.Code, p.RetryAfter = http.StatusBadRequest, znode.ErrBadArguments, 0
		p.Param, p.Hint = "body", "the connection was cut before the end: try again"
	}
	return p
}
