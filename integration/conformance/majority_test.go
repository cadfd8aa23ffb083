//go:build interop

package conformance_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// try connects, and records what the server says. Without a majority a server may need a moment, as clients know that
// allow reads alone.
func (r *run) try(c *client, s *step) error {
	if c.conn.Err() == nil {
		c.state = c.conn.State()
	}
	var conn *cluster.Conn
	dial := func() (err error) {
		conn, err = cluster.Dial(r.e.Server(s.server).Addr(), cluster.ConnectOptions{
			Timeout: time.Duration(s.timeout) * tick, Session: c.state, ReadOnly: s.readOnly})
		return err
	}
	err := dial()
	if s.readOnly && err != nil && !errors.Is(err, cluster.ErrExpired) {
		_ = wait.For(r.t.Context(), "an answer", stepPatience, func() error {
			if err = dial(); errors.Is(err, cluster.ErrExpired) {
				return nil
			}
			return err
		})
	}
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
