package zk

import (
	"errors"
	"os"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
)

const (
	// quietTime is for how long a client must have sent nothing to be let go, when this server leaves. One that sends
	// goes with the reply: its next request is not on its way then.
	quietTime = 20 * time.Millisecond
	// leaveLimit is how long a connection may take to leave, for a client that never pauses and for requests that
	// no leader answers.
	leaveLimit = time.Second
)

// errLeaving interrupts a reader that waits for its client.
var errLeaving = errors.New("the server stops")

// leave has the connection end in a moment in which all that was read from it is answered, because this server
// stops. It never blocks.
func (c *conn) leave() {
	if c.sc.Load() == nil { // there is nothing to answer yet
		c.out.end(server.ReasonStopping.String())
		return
	}
	if c.leaving.Swap(true) {
		return
	}
	_ = c.net.SetReadDeadline(time.Now()) // the reader looks at leaving
	time.AfterFunc(leaveLimit, func() { c.out.end(server.ReasonStopping.String()) })
}

// leaveNow is called by the reader, when the server leaves and no whole frame waits. It reports whether the
// connection has been told to go, behind the last reply; if not, there is more to read.
func (c *conn) leaveNow(served bool) (bool, error) {
	if c.in.have() > 0 || !served && c.pending.Load() == 0 {
		if err := c.net.SetReadDeadline(time.Now().Add(quietTime)); err != nil {
			return false, err
		}
		if err := c.in.fill(); !errors.Is(err, os.ErrDeadlineExceeded) {
			return false, err
		}
	}
	c.closing = true
	c.handedOn(c.sc.Load().Read(goAway{c}))
	return true, nil
}

// goAway is the last thing that happens on a connection of a server that leaves. It implements server.Op.
type goAway struct{ c *conn }

// Read implements server.Op.
func (g goAway) Read(v *server.View) {
	if b, ok := g.c.out.begin(); ok {
		g.c.out.commit(wire.AppendReply(b, wire.GoAway(v.Zxid()), nil), false)
	}
	g.c.out.end(server.ReasonStopping.String())
}

// Weight implements server.Op.
func (goAway) Weight(*server.View) int { return 0 }

// Done implements server.Op; it is no write.
func (goAway) Done(*server.View, *state.Result) {}
