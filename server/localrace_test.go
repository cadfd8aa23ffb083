package server

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// wander uses one session after the other over many connections, some of which it leaves with an upgrade under way.
// Coming back never fails.
func (k *kit) wander(name string, rng *rand.Rand, rounds int) error {
	var left sync.WaitGroup
	defer left.Wait()
	var s session.Session
	var c *client
	answer := func(call func(op Op) error, then func(r *state.Result)) error {
		done := make(chan error, 1)
		o := &op{c: c, name: "op", done: func(_ *View, r *state.Result) {
			then(r)
			done <- r.Code.Err()
		}}
		if err := call(o); err != nil {
			return err
		}
		select {
		case err := <-done:
			return err
		case <-c.gone:
			return fmt.Errorf("disconnected because of %v", c.disconnected())
		}
	}
	create := func(c *client, path string, mode znode.Mode) func(op Op) error {
		return func(op Op) error {
			return c.Conn.Write(&state.Command{Op: state.OpCreate, Path: path, Mode: mode, ACL: znode.OpenACL}, op)
		}
	}
	for i := range rounds {
		path := fmt.Sprintf("/%s-%d", name, i)
		ignore := func(*state.Result) {}
		var err error
		switch n := rng.IntN(10); {
		case s.ID == 0:
			c = k.connect()
			err = answer(func(op Op) error { return c.OpenSession(4*time.Second, op) },
				func(r *state.Result) { s = *r.Session })
		case n < 3:
			err = answer(create(c, path, znode.Persistent), ignore)
		case n < 4:
			err = answer(create(c, path, znode.Ephemeral), ignore)
		case n < 5:
			if err = answer(func(op Op) error {
				return c.Conn.Write(&state.Command{Op: state.OpCloseSession}, op)
			}, ignore); err == nil {
				c.Close("")
				s = session.Session{}
			}
		default: // comes back, while the former connection may be in the middle of an upgrade
			former := c
			left.Go(func() {
				_ = create(former, path, znode.Ephemeral)(&op{c: former, name: "late"}) // whatever comes of it
				former.Close("")
			})
			c = k.connect()
			err = answer(func(op Op) error { return c.AttachSession(s.ID, s.Password, s.Timeout, op) }, ignore)
		}
		if err != nil {
			return fmt.Errorf("%s, round %d, session %v: %w", name, i, s.ID, err)
		}
	}
	if s.ID == 0 {
		return nil
	}
	return answer(func(op Op) error { return c.Conn.Write(&state.Command{Op: state.OpCloseSession}, op) },
		func(*state.Result) { c.Close("") })
}

func TestLocal_ManyConnections_ComeBack(t *testing.T) {
	seed := seed.Of(t)
	k := newKit(t, local)
	var log, clients sync.WaitGroup
	k.log.run(&log)
	for i := range 8 {
		clients.Go(func() {
			if err := k.wander(fmt.Sprint("c", i), rand.New(rand.NewPCG(seed, uint64(i))), 300); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	k.log.stop()
	log.Wait()
	k.log.drain()
	k.expectSessions("at the end", 0, 0)
	if got := k.holds(); got != (holdings{}) {
		t.Errorf("the server holds %+v, want nothing", got)
	}
}
