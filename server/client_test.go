package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// client is the port's side of one connection: it records what the server puts into its outbox.
type client struct {
	*Conn
	k *kit

	mu      sync.Mutex // protects the fields below
	lines   []string
	zxids   []znode.Zxid // of the replies and events, in the order of the outbox
	reasons []Reason
	gone    chan struct{} // closed at the first reason
}

func (k *kit) connect(ids ...znode.ID) *client {
	c := &client{k: k, gone: make(chan struct{})}
	c.Conn = k.srv.NewConn(c, append([]znode.ID{{Scheme: "ip", ID: "127.0.0.1"}}, ids...))
	return c
}

// Notify implements Client.
func (c *client) Notify(n *watch.Notification) {
	c.say(n.Zxid, "event %v %s", n.Type, strings.Clone(n.Path))
}

// Address implements Client.
func (*client) Address() string { return "127.0.0.1:40001" }

// Disconnect implements Client.
func (c *client) Disconnect(r Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.reasons) == 0 {
		close(c.gone)
	}
	c.reasons = append(c.reasons, r)
}

func (c *client) say(z znode.Zxid, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
	c.zxids = append(c.zxids, z)
}

// outbox takes what the client was sent since the last call.
func (c *client) outbox() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	c.lines = nil
	return lines
}

func (c *client) disconnected() []Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reasons)
}

// expect compares the outbox since the last call.
func (c *client) expect(what string, want ...string) {
	c.k.tb.Helper()
	if got := c.outbox(); !slices.Equal(got, want) {
		c.k.tb.Errorf("%s: the client got %q, want %q", what, got, want)
	}
}

func (c *client) expectKicks(want ...Reason) {
	c.k.tb.Helper()
	if got := c.disconnected(); !slices.Equal(got, want) {
		c.k.tb.Errorf("disconnected because of %v, want %v", got, want)
	}
}

// op is a request; its answer goes into the client's outbox.
type op struct {
	c    *client
	name string
	read func(v *View) string
	size int // see Weight
	done func(v *View, r *state.Result)
}

// Read implements Op.
func (o *op) Read(v *View) { o.c.say(v.Zxid(), "%s: %s", o.name, o.read(v)) }

// Weight implements Op.
func (o *op) Weight(*View) int { return o.size }

// Done implements Op.
func (o *op) Done(v *View, r *state.Result) {
	if o.done != nil {
		o.done(v, r)
	}
	o.c.say(r.Zxid, "%s: %s", o.name, r.Code.Name())
}

// get reads a znode's data; with watch it leaves one.
func (c *client) get(path string, watching bool) {
	c.k.tb.Helper()
	o := &op{c: c, name: "get " + path, read: func(v *View) string {
		if watching {
			if err := v.Watches().Add(c.Watcher(), path, watch.Data); err != nil {
				return err.Error()
			}
		}
		data, _, code := v.Tree().Get(path, c.Identities())
		if code != znode.OK {
			return code.Name()
		}
		return string(data)
	}}
	if err := c.Conn.Read(o); err != nil {
		c.k.tb.Error(err)
	}
}

// write sends a command; its answer is recorded under name.
func (c *client) write(name string, cmd *state.Command) {
	c.k.tb.Helper()
	cmd.Identities = c.Identities()
	if err := c.Conn.Write(cmd, &op{c: c, name: name}); err != nil {
		c.k.tb.Error(err)
	}
}

func (c *client) create(path, data string) {
	c.k.tb.Helper()
	c.write("create "+path, &state.Command{
		Op: state.OpCreate, Path: path, Data: []byte(data), ACL: znode.OpenACL,
	})
}

func (c *client) set(path, data string) {
	c.k.tb.Helper()
	c.write("set "+path, &state.Command{
		Op: state.OpSetData, Path: path, Data: []byte(data), Version: znode.AnyVersion,
	})
}

func (c *client) ephemeral(path string) {
	c.k.tb.Helper()
	c.write("create "+path, &state.Command{
		Op: state.OpCreate, Path: path, Mode: znode.Ephemeral, ACL: znode.OpenACL,
	})
}

// open gives the connection a new session, and applies what waits.
func (c *client) open(timeout time.Duration) session.Session {
	c.k.tb.Helper()
	var s session.Session
	o := &op{c: c, name: "open", done: func(_ *View, r *state.Result) { s = *r.Session }}
	if err := c.OpenSession(timeout, o); err != nil {
		c.k.tb.Fatal(err)
	}
	c.k.log.drain()
	if s.ID == 0 {
		c.k.tb.Fatal("no session")
	}
	c.expect("opening a session", "open: OK")
	return s
}

// attach asks for a session that exists.
func (c *client) attach(s *session.Session, password session.Password) {
	c.k.tb.Helper()
	if err := c.AttachSession(s.ID, password, s.Timeout, &op{c: c, name: "attach"}); err != nil {
		c.k.tb.Error(err)
	}
}
