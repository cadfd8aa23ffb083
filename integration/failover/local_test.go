package failover_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// localSessions is an ensemble whose new sessions are local.
func localSessions(t *testing.T) *cluster.Ensemble {
	return start(t, 3, cluster.Options{Config: map[string]string{
		"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true",
	}})
}

// has reports whether a server knows a session, and whether as a local one.
func has(t *testing.T, s *cluster.Server, id znode.SessionID) (known, local bool) {
	t.Helper()
	var before, after string
	wait.Succeeds(t, "a server tells its sessions", func() error { // on a busy machine it may lose contact for a moment
		text, err := s.FourLetter("dump")
		ok := false
		if before, after, ok = strings.Cut(text, "Global Sessions("); err != nil || !ok {
			return fmt.Errorf("dump of server %d: %q, %w", s.ID, text, err)
		}
		return nil
	})
	after, _, _ = strings.Cut(after, "ephemeral nodes dump:")
	line := func(part, end string) bool { return strings.Contains(part, id.String()+end) }
	local = line(before, "\n")
	return local || line(after, "\t"), local
}

// gone fails unless the session is unknown to a server.
func gone(t *testing.T, s *cluster.Server, x cluster.Session) {
	t.Helper()
	wait.Succeeds(t, fmt.Sprintf("server %d says that session %s has expired", s.ID, x.ID), func() error {
		c, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{Session: x})
		if err == nil {
			c.Drop()
			t.Fatalf("server %d has session %s", s.ID, x.ID)
		}
		if errors.Is(err, cluster.ErrExpired) {
			return nil
		}
		return err
	})
}

// TestLocalSessions_Move: a local session is one server's until its client creates an ephemeral znode, two at once here;
// then it moves.
func TestLocalSessions_Move(t *testing.T) {
	t.Parallel()
	e := localSessions(t)
	for _, home := range e.Servers() { // the leader, too
		other := e.Server(home.ID%3 + 1)
		path := fmt.Sprintf("/moves-%d", home.ID)
		create := func(path string, mode znode.Mode) *wire.CreateRequest {
			return &wire.CreateRequest{Path: path, ACL: znode.OpenACL, Mode: mode}
		}
		c := home.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
		persistent := c.Send(wire.OpCreate, create(path, znode.Persistent))
		if _, err := persistent.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, s := range e.Servers() {
			if known, local := has(t, s, c.Session.ID); known != (s == home) || local != known {
				t.Errorf("server %d knows the local session of server %d: %t, as a local one %t", s.ID, home.ID, known, local)
			}
		}
		gone(t, other, c.State())

		first := c.Send(wire.OpCreate, create(path+"/e", znode.Persistent)) // of no effect on the session
		a := c.Send(wire.OpCreate, create(path+"/e1", znode.Ephemeral))
		b := c.Send(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
			{Type: wire.OpCreate, Request: create(path+"/e2", znode.Ephemeral)},
		}})
		for _, call := range []*cluster.Call{first, a, b} {
			if _, err := call.Wait(); err != nil {
				t.Fatalf("%s: %v", call.Op, err)
			}
		}
		if a.Reply.Zxid != first.Reply.Zxid+2 || b.Reply.Zxid != a.Reply.Zxid+1 {
			t.Errorf("zxids %v, %v, %v; want one transaction between the first two", first.Reply.Zxid, a.Reply.Zxid,
				b.Reply.Zxid)
		}
		moved := other.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout, Session: c.State()})
		<-c.Ended()
		for _, s := range e.Servers() {
			wait.Succeeds(t, "all servers have the session", func() error {
				if known, local := has(t, s, c.Session.ID); !known || local {
					return fmt.Errorf("server %d knows it: %t, as a local one %t", s.ID, known, local)
				}
				return nil
			})
		}
		if _, err := moved.Do(wire.OpCloseSession, nil); err != nil {
			t.Fatal(err)
		}
		reader := other.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
		for _, name := range []string{"/e1", "/e2"} {
			if _, err := reader.Do(wire.OpExists, &wire.ExistsRequest{Path: path + name}); !errors.Is(err, znode.ErrNoNode) {
				t.Errorf("%s%s after its session's end: %v, want %v", path, name, err, znode.ErrNoNode)
			}
		}
	}
	e.CheckReplicas()
}

// TestLocalSessions_End: a local session comes back to its server within its timeout, and only there; it ends with the
// timeout, and with the server's process. A session that was upgraded outlives that.
func TestLocalSessions_End(t *testing.T) {
	t.Parallel()
	e := localSessions(t)
	home := e.Followers()[0]
	other := e.Server(home.ID%3 + 1)

	began := time.Now() // before the server's time begins
	short := home.Connect(t, cluster.ConnectOptions{Timeout: time.Second})
	short.Drop()
	wait.Succeeds(t, "the short session expires", func() error {
		if known, _ := has(t, home, short.Session.ID); known {
			return errors.New("it is still there")
		}
		return nil
	})
	if took := time.Since(began); took < time.Second {
		t.Errorf("a session of 1s expired after %v", took)
	}
	gone(t, home, short.State())

	c := home.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
	mayVanish := c.Send(wire.OpCreate, &wire.CreateRequest{Path: "/written", ACL: znode.OpenACL})
	c.Drop()
	<-mayVanish.Done
	c = home.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout, Session: c.State()})
	_, before := c.Do(wire.OpExists, &wire.ExistsRequest{Path: "/written"})
	if _, err := c.Do(wire.OpSync, &wire.SyncRequest{Path: "/"}); err != nil {
		t.Fatal(err)
	}
	if _, after := c.Do(wire.OpExists, &wire.ExistsRequest{Path: "/written"}); !errors.Is(after, before) {
		t.Errorf("a write of the former connection took effect after the session was taken up: %v, then %v", before, after)
	}

	upgraded := home.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
	if _, err := upgraded.Do(wire.OpCreate, &wire.CreateRequest{Path: "/kept", ACL: znode.OpenACL, Mode: znode.Ephemeral}); err != nil {
		t.Fatal(err)
	}
	home.Kill()
	<-c.Ended()
	gone(t, other, c.State())
	fresh := other.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout}) // as a client does that learns of it
	if _, err := fresh.Do(wire.OpExists, &wire.ExistsRequest{Path: "/kept"}); err != nil {
		t.Errorf("the ephemeral of a session that was upgraded: %v", err)
	}
	moved := other.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout, Session: upgraded.State()})
	home.Start()
	e.WaitServing()
	gone(t, home, c.State())
	if _, err := moved.Do(wire.OpDelete, &wire.DeleteRequest{Path: "/kept", Version: znode.AnyVersion}); err != nil {
		t.Error(err)
	}
	e.CheckReplicas()
}
