package load

import (
	"context"
	"crypto/tls"
	"errors"
	"time"
)

// Reconnecting waits this long after the first failure and twice as long after
// each further one, up to the most. Real clients wait longer; these are to find
// out when a server is back.
const (
	backoffFirst = time.Millisecond
	backoffMost  = 20 * time.Millisecond
)

// home is a session and the host that it is at, which is another one after a
// connection has ended.
type home struct {
	hosts   []string
	at      int   // index in hosts
	conn    *conn // nil while disconnected
	session session
	timeout time.Duration // of the session
	tls     *tls.Config   // nil: none
}

// expect bounds the wait for the answer to a request that is sent at start: a client gives a server up
// after two thirds of the session's timeout, as ZooKeeper's do, and has the rest to find another.
func (h *home) expect(start time.Time) { h.conn.nc.SetDeadline(start.Add(h.timeout * 2 / 3)) }

// leave gives the connection up, for the next host.
func (h *home) leave() {
	h.conn.nc.Close()
	h.session, h.conn = h.conn.session, nil
	h.at = (h.at + 1) % len(h.hosts)
}

// comeBack tries one host after the other until ctx ends, when it reports false. expired is called when
// the session is not known any more; a new one takes its place.
func (h *home) comeBack(ctx context.Context, expired func()) bool {
	wait := backoffFirst
	for ctx.Err() == nil {
		c, err := connect(ctx, h.hosts[h.at], h.timeout, h.tls, h.session)
		if err == nil {
			h.conn = c
			return true
		}
		if errors.Is(err, errSession) {
			expired()
			h.session = session{}
			continue
		}
		h.at = (h.at + 1) % len(h.hosts)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, backoffMost)
	}
	return false
}
