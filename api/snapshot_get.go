package api

import (
	"fmt"
	"net/http"
	"time"
)

// getSnapshot streams the whole state as it is at one moment: a backup, in the format
// of this server's own snapshots (zstd, with a digest at its end).
//
// The state goes on changing meanwhile. That costs copies, so there is one such stream
// at a time.
func (q *request) getSnapshot() error {
	if err := q.needOperator(); err != nil {
		return err
	}
	d := q.door
	if !d.backup.TryLock() {
		return tooMany(10, "a snapshot is on its way already")
	}
	defer d.backup.Unlock()
	frozen, zxid := d.srv.Snapshot()
	defer frozen.Release()
	frozen.OnlyState()
	q.setZxid(zxid)
	h := q.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="zk-lite-%s.snapshot"`, zxid))
	h.Set("Cache-Control", "no-store")
	q.begin(http.StatusOK)
	if q.http.Method == http.MethodHead {
		return nil
	}
	if err := frozen.Write(&download{q}); err != nil {
		d.cfg.Logger.Info("a snapshot was not delivered", "client", q.address, "error", err)
		// net/http's way to cut the answer off, so that it does not pass for a whole one.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// download writes to a client that has to keep on reading, and stops when the server
// does.
type download struct{ q *request }

func (w *download) Write(p []byte) (int, error) {
	if w.q.door.stopping.Err() != nil {
		return 0, errStopping
	}
	_ = http.NewResponseController(w.q.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.q.w.Write(p)
}
