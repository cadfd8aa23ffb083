package forward

import (
	"time"

	"github.com/zk-lite/zk-lite/internal/fair"
)

// A client may have a part of what may be pending: those who ask for little find room, and a short queue.
const (
	shareOfCount = 2
	shareOfBytes = 64
	costOfBytes  = 4096 // so many bytes count as much as one more command
)

// From is whose command it is.
type From struct {
	Member *fair.Member // a connection, which adds one command at a time; nil: the server itself
	// Patience is how long the command may wait for room; 0: forever.
	Patience time.Duration
}

// hasRoomLocked reports whether there is room for one more command.
func (q *Queue) hasRoomLocked() bool {
	return q.lenLocked()+q.granted.Count < q.maxCount && int(q.bytes.Load())+q.granted.Bytes < q.maxBytes
}

// holdsShareLocked reports whether a client has as much as it may.
func (q *Queue) holdsShareLocked(g *fair.Group) bool {
	return g != &q.server &&
		(g.Holds.Count >= max(q.maxCount/shareOfCount, 1) || g.Holds.Bytes >= q.maxBytes/shareOfBytes)
}

// holdLocked changes what a client holds.
func (q *Queue) holdLocked(g *fair.Group, count, bytes int) {
	if g == nil {
		return
	}
	g.Holds.Count += count
	g.Holds.Bytes += bytes
	if q.holdsShareLocked(g) {
		q.waiting.Hold(g)
	} else {
		q.waiting.Resume(g)
	}
}

// waitLocked waits, without the lock, until m may add a command.
func (q *Queue) waitLocked(m *fair.Member, patience time.Duration) error {
	q.waiting.Push(m)
	q.waiting.Charge(m, int64(1+m.Size/costOfBytes))
	q.mu.Unlock()
	var overdue <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		overdue = timer.C
	}
	var err error
	select {
	case <-m.Granted():
	case <-q.stopping:
		err = ErrStopped
	case <-overdue:
		err = ErrOverdue
	}
	q.mu.Lock()
	if err != nil {
		if q.waiting.Remove(m) {
			return err
		}
		<-m.Granted()
	}
	q.reserveLocked(m, -1)
	if err != nil {
		q.grantLocked()
	}
	return err
}

// grantLocked gives room to those who wait.
func (q *Queue) grantLocked() {
	for q.hasRoomLocked() {
		m := q.waiting.Pop()
		if m == nil {
			return
		}
		q.reserveLocked(m, 1)
		m.Grant()
	}
}

// reserveLocked keeps room for m, or with -1 ends that.
func (q *Queue) reserveLocked(m *fair.Member, by int) {
	q.granted.Count += by
	q.granted.Bytes += by * m.Size
	q.holdLocked(m.Group(), by, by*m.Size)
}
