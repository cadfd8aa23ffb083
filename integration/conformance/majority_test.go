//go:build interop

package conformance_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// try connects once, and records what the server says.
func (r *run) try(c *client, s *step) error {
	if c.conn.Err() == nil {
		c.state = c.conn.State()
	}
	conn, err := cluster.Dial(r.e.Server(s.server).Addr(), cluster.ConnectOptions{
		Timeout: time.Duration(s.timeout) * tick, Session: c.state, ReadOnly: s.readOnly})
	switch {
	case err == nil:
		c.conn.Drop()
		c.conn, c.ended = conn, false
		c.shook = fmt.Sprintf("connected, read-only %t", conn.Response.ReadOnly)
	case errors.Is(err, cluster.ErrExpired):
		c.shook = "expired"
	default:
		c.shook = "no answer"
	}
	return nil
}

// majority ends two of three servers, or starts them again and waits until the clients of the first one are sent away.
func (r *run) majority(s *step) error {
	if s.kind == lose {
		r.e.KillAll(r.e.Server(2), r.e.Server(3))
		wait.Succeeds(r.t, r.e.Name+" serves reads alone", func() error {
			if mode, err := r.e.Server(1).Mode(); err != nil || mode != "read-only" {
				return fmt.Errorf("mode %q, %w", mode, err)
			}
			return nil
		})
		return nil
	}
	r.e.StartAll()
	r.e.WaitServing()
	for _, c := range r.clients {
		select {
		case <-c.conn.Ended():
		case <-time.After(closePatience):
		}
	}
	return nil
}
