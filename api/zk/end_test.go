package zk_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// neverHurried is the option of a server that cuts off no client that it sends away, however busy the machine is.
func neverHurried(_ *serverConfig, z *zkConfig) { z.LeaveTimeout = patience }

// leave stops the listener; the returned function waits for the end of that.
func (k *kit) leave() (wait func()) {
	ended := make(chan error, 1)
	go func() { ended <- k.listener.Shutdown(context.Background()) }()
	return func() {
		k.t.Helper()
		select {
		case err := <-ended:
			if err != nil {
				k.t.Errorf("shutting down: %v", err)
			}
		case <-time.After(patience):
			k.t.Fatal("the listener does not end")
		}
	}
}

// goAway expects the last frame of a server that shuts down, and the end of the connection.
func (c *client) goAway() {
	c.t.Helper()
	h, _, err := wire.ParseReply(c.next(), wire.OpPing)
	if err != nil || !wire.IsGoAway(h) {
		c.t.Fatalf("%+v, %v; want a GoAway", h, err)
	}
	c.closed()
	_ = c.c.Close()
}

// A planned stop failed one request of each connection: what had been read was not answered.
func TestRegression_Leave_AnswersWhatItHasRead(t *testing.T) {
	k := start(t, neverHurried)
	c, idle := k.connect(), k.connect()
	release := k.log.block()
	const n = 50
	var xids []wire.Xid
	for i := range n {
		xids = append(xids, c.send(wire.OpCreate, create(fmt.Sprintf("/a%d", i), "", znode.Persistent)))
	}
	xids = append(xids, c.send(wire.OpExists, &wire.ExistsRequest{Path: "/a0"}))
	k.eventually("all to be read", func() bool { return k.listener.Totals().Outstanding == n+1 })
	wait := k.leave()
	idle.goAway()
	release()
	for i, xid := range xids {
		op := wire.OpCreate
		if i == n {
			op = wire.OpExists
		}
		if h, _ := c.reply(xid, op); h.Err != znode.OK {
			t.Fatalf("request %d: %s", i, h.Err.Name())
		}
	}
	c.goAway()
	wait()
}

// A request without a reply before the GoAway has not taken effect, whenever it was sent: the Go client sends it again
// elsewhere.
func TestLeave_ClientThatNeverPauses_KnowsWhatHasHappened(t *testing.T) {
	for range 20 {
		k := start(t, neverHurried)
		c := k.connect()
		sent, answered := 0, 0
		var wait func()
		for wait == nil || answered < sent {
			if sent == 20 {
				wait = k.leave()
			}
			if wait == nil || sent < 40 {
				if _, err := c.c.Write(wire.AppendRequest(nil, wire.RequestHeader{Xid: wire.Xid(sent + 1), Type: wire.OpCreate},
					create(fmt.Sprintf("/a%d", sent), "", znode.Persistent))); err != nil {
					break
				}
				sent++
			}
			h, _, err := wire.ParseReply(c.next(), wire.OpCreate)
			if err != nil {
				t.Fatal(err)
			}
			if wire.IsGoAway(h) {
				break
			}
			answered++
		}
		_ = c.c.Close()
		wait()
		k.srv.View(func(v *server.View) {
			if _, code := v.Tree().Exists(fmt.Sprintf("/a%d", answered), nil); code == znode.OK {
				t.Errorf("%d creates of %d were answered, and more have happened", answered, sent)
			}
			if _, code := v.Tree().Exists(fmt.Sprintf("/a%d", answered-1), nil); code != znode.OK {
				t.Errorf("%d creates of %d were answered, and fewer have happened", answered, sent)
			}
		})
	}
}

// No leader answers: the connection ends all the same.
func TestLeave_NothingIsAnswered_EndsInTime(t *testing.T) {
	k := start(t)
	c := k.connect()
	release := k.log.block()
	defer release()
	c.send(wire.OpCreate, create("/a", "", znode.Persistent))
	k.eventually("it to be read", func() bool { return k.listener.Totals().Outstanding == 1 })
	wait := k.leave()
	c.closed()
	_ = c.c.Close()
	wait()
}
