package learner

import (
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// The errors of Request, Revalidate, Sync and Touch, besides those of the network, after which Follow ends, too.
var (
	// ErrNotConnected reports that Follow has no leader at present. Nothing was sent.
	ErrNotConnected = errors.New("not connected to the ensemble's leader")
	// ErrSessionID reports an id with which an ensemble destroys itself: with the top byte 0xff, which marks znodes
	// with a TTL, an ephemeral is committed, and then no server can read its log.
	ErrSessionID = errors.New("a session id that ZooKeeper must not see")
)

func checkSession(id znode.SessionID) error {
	if id == 0 || id == -1<<63 || uint64(id)>>56 == 0xff {
		return fmt.Errorf("%w: %v", ErrSessionID, id)
	}
	return nil
}

// opSync is the type of a request that Sync sends (ZooDefs.OpCode).
const opSync = 9

// Request sends a client's write: its session, the client's number and type of the request, the record without the
// header, and the client's identities. The answer is the Transaction with this session and number, which is of type
// OpError if the leader refuses; if the connection ends before, no one knows whether one was made. The session is new
// in a createSession (type -10, the record is the timeout in milliseconds).
func (l *Learner) Request(session znode.SessionID, cxid, op int32, record []byte, ids []znode.ID) error {
	if err := checkSession(session); err != nil {
		return err
	}
	c, err := l.connection()
	if err != nil {
		return err
	}
	return c.send(packet{kind: request, zxid: -1, data: requestBody(session, cxid, op, record), ids: ids})
}

func requestBody(session znode.SessionID, cxid, op int32, record []byte) []byte {
	b := make([]byte, 0, 16+len(record))
	b = jute.AppendInt32(jute.AppendInt32(jute.AppendInt64(b, int64(session)), cxid), op)
	return append(b, record...)
}

// Sync asks the leader to say when all that it has proposed is committed. Handler.Synced is called after those
// transactions, once for each Sync, in their order.
func (l *Learner) Sync(session znode.SessionID, cxid int32, path string) error {
	if err := checkSession(session); err != nil {
		return err
	}
	c, err := l.connection()
	if err != nil {
		return err
	}
	c.syncs.Add(1)
	return c.send(packet{kind: request, zxid: -1,
		data: requestBody(session, cxid, opSync, jute.AppendUstring(nil, path))})
}

// Revalidate asks the leader whether a session lives. If so, it is ours from then on: the server that had it before
// loses it. Handler.Revalidated is called with the answer. The timeout is in milliseconds.
func (l *Learner) Revalidate(session znode.SessionID, timeout int32) error {
	if err := checkSession(session); err != nil {
		return err
	}
	c, err := l.connection()
	if err != nil {
		return err
	}
	return c.send(packet{kind: revalidate, zxid: -1,
		data: jute.AppendInt32(jute.AppendInt64(nil, int64(session)), timeout)})
}

// Touch reports that a session's client was heard; the leader hears it with the answer to its next ping, twice a tick.
// The timeout is in milliseconds. Without a connection it does nothing.
func (l *Learner) Touch(session znode.SessionID, timeout int32) error {
	if err := checkSession(session); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live != nil {
		l.touch[session] = timeout
	}
	return nil
}

// answerPing answers with the sessions that were touched since the last ping, and never with null, which ends the
// leader's handler.
func (l *Learner) answerPing(c *conn, p packet) error {
	l.mu.Lock()
	touched := make([]byte, 0, len(l.touch)*(8+4))
	for id, timeout := range l.touch {
		touched = jute.AppendInt32(jute.AppendInt64(touched, int64(id)), timeout)
	}
	clear(l.touch)
	l.status.Proposed = p.zxid
	l.mu.Unlock()
	return c.send(packet{kind: ping, zxid: p.zxid, data: touched})
}

// Status returns what the Learner does at present.
func (l *Learner) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	if l.queue != nil {
		s.Queued = l.queue.waiting()
	}
	return s
}

func (l *Learner) connection() (*conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		return nil, ErrNotConnected
	}
	return l.live, nil
}

// goLive lets requests use the connection.
func (l *Learner) goLive(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live = c
}

// endLive ends that.
func (l *Learner) endLive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live = nil
	l.status.Server, l.status.Synced = "", false
	clear(l.touch)
}
