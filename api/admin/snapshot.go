package admin

import (
	"fmt"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
)

// getSnapshot streams the whole state as it is at one moment: a backup, in the format
// of this server's own snapshots (zstd, with a digest at its end).
//
// The state goes on changing meanwhile. That costs copies, so there is one such stream
// at a time.
func (h *handlers) getSnapshot(q *rest.Request) error {
	if !h.backup.TryLock() {
		return rest.TooMany(10, "another snapshot is being sent already")
	}
	defer h.backup.Unlock()
	frozen, zxid := h.server.Snapshot()
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
		h.backupsFailed.Add(1)
		h.core.Config.Logger.Info("a snapshot was not delivered", "client", q.Address, "error", err)
		// net/http's way to cut the answer off, so that it does not pass for a whole one.
		panic(http.ErrAbortHandler)
	}
	h.backups.Add(1)
	return nil
}

// download writes to a client that has to keep on reading, and stops when the server
// does.
type download struct{ q *rest.Request }

func (w *download) Write(p []byte) (int, error) {
	if w.q.Core.Stopping.Err() != nil {
		return 0, rest.ErrStopping
	}
	_ = http.NewResponseController(w.q.W).SetWriteDeadline(time.Now().Add(rest.WriteTimeout))
	return w.q.Write(p)
}
