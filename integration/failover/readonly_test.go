//go:build slow || privileged

package failover_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// TestReadOnly_MajorityLost: two of three servers die while a write is on its way. The third serves reads to clients
// that allow it: what was committed, not that write. It takes no other client, and no session of the log. When the
// majority is back, the clients are sent on, sessions and ephemerals are alive or expire by their rules, and no change
// is missed.
func TestReadOnly_MajorityLost(t *testing.T) {
	t.Parallel()
	e := start(t, 3, cluster.Options{Config: map[string]string{"readonlymode.enabled": "true"}})
	for _, leaderSurvives := range []bool{true, false} {
		t.Run(fmt.Sprintf("leader survives %v", leaderSurvives), func(t *testing.T) {
			r := &partedReads{t: t, e: e, root: fmt.Sprintf("/read-only-%v", leaderSurvives)}
			leader, followers := e.Roles()
			r.last, r.dead = leader, followers
			if !leaderSurvives {
				r.last, r.dead = followers[0], []*cluster.Server{leader, followers[1]}
			}
			r.prepare()
			r.loseMajority()
			r.readAlone()
			r.comeBack()
		})
	}
	e.CheckReplicas()
}

// partedReads are clients of a server whose peers die.
type partedReads struct {
	t    *testing.T
	e    *cluster.Ensemble
	root string
	last *cluster.Server
	dead []*cluster.Server

	owner  *cluster.Conn // of an ephemeral; it comes back
	reader *cluster.Conn
	stuck  *cluster.Call // a write on its way
}

// do is a request on which the test depends.
func (r *partedReads) do(c *cluster.Conn, op wire.OpCode, body wire.Request) wire.Response {
	r.t.Helper()
	x, err := c.Do(op, body)
	if err != nil {
		r.t.Fatalf("%s %+v failed: %v", op, body, err)
	}
	return x
}

func (r *partedReads) create(c *cluster.Conn, path string, mode znode.Mode) {
	r.t.Helper()
	r.do(c, wire.OpCreate, &wire.CreateRequest{Path: path, Data: []byte("1"), ACL: znode.OpenACL, Mode: mode})
}

// prepare leaves an ephemeral of a client that comes back, and one of a client that does not.
func (r *partedReads) prepare() {
	r.owner = r.last.Connect(r.t, cluster.ConnectOptions{})
	gone := r.last.Connect(r.t, cluster.ConnectOptions{Timeout: 2 * time.Second})
	r.create(r.owner, r.root, znode.Persistent)
	r.create(r.owner, r.root+"/kept", znode.Ephemeral)
	r.create(gone, r.root+"/gone", znode.Ephemeral)
	gone.Drop()
}

// loseMajority ends the other servers, which do not see a last write.
func (r *partedReads) loseMajority() {
	for _, s := range r.dead {
		s.Pause()
	}
	r.stuck = r.owner.Send(wire.OpSetData, &wire.SetDataRequest{Path: r.root, Data: []byte("uncommitted"), Version: -1})
	r.e.KillAll(r.dead...)
	wait.Succeeds(r.t, "the last server is in read-only mode", func() error {
		if mode, err := r.last.Mode(); err != nil || mode != "read-only" {
			return fmt.Errorf("mode %q, %w", mode, err)
		}
		return nil
	})
}

// readAlone reads at the last server.
func (r *partedReads) readAlone() {
	if got, err := r.last.FourLetter("isro"); got != "ro" {
		r.t.Errorf("isro: %q, %v; want ro", got, err)
	}
	if c, err := cluster.Dial(r.last.Addr(), cluster.ConnectOptions{}); err == nil {
		c.Drop()
		r.t.Error("a client that does not allow read-only mode got a session")
	}
	known := cluster.ConnectOptions{Session: r.owner.State(), ReadOnly: true}
	if c, err := cluster.Dial(r.last.Addr(), known); err == nil || errors.Is(err, cluster.ErrExpired) {
		r.t.Errorf("a session of the log: %v, %v; want neither a connection nor that it has expired", c, err)
	}
	r.reader = r.last.Connect(r.t, cluster.ConnectOptions{ReadOnly: true})
	if !r.reader.Response.ReadOnly {
		r.t.Errorf("response %+v, want that it is read-only", r.reader.Response)
	}
	x := r.do(r.reader, wire.OpGetData, &wire.GetDataRequest{Path: r.root, Watch: true}).(*wire.GetDataResponse)
	if string(x.Data) != "1" || x.Stat.Version != 0 {
		r.t.Errorf("read %q, version %d; want 1, version 0, which is all that was committed", x.Data, x.Stat.Version)
	}
	for _, name := range []string{"kept", "gone"} { // no one can end a session
		r.do(r.reader, wire.OpExists, &wire.ExistsRequest{Path: r.root + "/" + name})
	}
	_, err := r.reader.Do(wire.OpSetData, &wire.SetDataRequest{Path: r.root, Version: -1})
	if err != znode.ErrNotReadOnly {
		r.t.Errorf("a write: %v, want %v", err, znode.ErrNotReadOnly)
	}
	if _, err := r.reader.Do(wire.OpSync, &wire.SyncRequest{Path: r.root}); err != znode.ErrNotReadOnly {
		r.t.Errorf("a sync: %v, want %v", err, znode.ErrNotReadOnly)
	}
	<-r.owner.Ended()
	if _, err := r.stuck.Wait(); !cluster.IsUnknown(err) {
		r.t.Errorf("a write without a majority was answered: %v", err)
	}
}

// comeBack starts the other servers, and looks what has become of the clients.
func (r *partedReads) comeBack() {
	for _, s := range r.dead {
		s.Start()
	}
	<-r.reader.Ended()
	r.e.WaitServing()
	c := r.last.Connect(r.t, cluster.ConnectOptions{Session: r.owner.State(), ReadOnly: true})
	if c.Response.ReadOnly || c.Session.ID != r.owner.Session.ID {
		r.t.Errorf("response %+v, want session %s for reading and writing", c.Response, r.owner.Session.ID)
	}
	x := r.do(c, wire.OpExists, &wire.ExistsRequest{Path: r.root + "/kept"}).(*wire.ExistsResponse)
	if x.Stat.EphemeralOwner != c.Session.ID {
		r.t.Errorf("the ephemeral's owner is %s, want %s", x.Stat.EphemeralOwner, c.Session.ID)
	}
	ended := cluster.ConnectOptions{Session: r.reader.State()}
	if _, err := cluster.Dial(r.last.Addr(), ended); !errors.Is(err, cluster.ErrExpired) {
		r.t.Errorf("the session of read-only mode: %v, want %v", err, cluster.ErrExpired)
	}

	seen := cluster.Session{LastZxid: r.reader.State().LastZxid}
	again := r.last.Connect(r.t, cluster.ConnectOptions{Session: seen})
	r.do(again, wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: seen.LastZxid, DataWatches: []string{r.root}})
	r.do(c, wire.OpSetData, &wire.SetDataRequest{Path: r.root, Data: []byte("2"), Version: -1})
	r.do(again, wire.OpSync, &wire.SyncRequest{Path: r.root})
	events := 0
	for _, item := range again.Items() {
		if item.Call == nil {
			events++
		}
	}
	if events != 1 {
		r.t.Errorf("the watch of read-only mode, set again: %d events, want 1", events)
	}
	wait.Succeeds(r.t, "the session whose client has gone expires", func() error {
		_, err := c.Do(wire.OpExists, &wire.ExistsRequest{Path: r.root + "/gone"})
		if err != znode.ErrNoNode {
			return fmt.Errorf("its ephemeral: %v", err)
		}
		return nil
	})
}
