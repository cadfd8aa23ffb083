//go:build interop

package migration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// serving is three servers of zk-lite that mirror three of ZooKeeper, and serve clients.
type serving struct {
	*testing.T
	origin *zookeeper.Ensemble
	mirror *cluster.Ensemble
}

// TestServe has clients at zk-lite while ZooKeeper leads: what they write is ZooKeeper's, in their order and with its
// answers; sessions come from ZooKeeper's servers; the deaths of leaders of both sides cost connections, no more.
func TestServe(t *testing.T) {
	s := serving{t, zookeeper.Run(t, zookeeper.Options{Servers: 3, Version: zookeeper.V38, Config: config(), Flags: javaFlags()}),
		cluster.Start(t, 3, cluster.Options{})}
	beginMirror(t, s.mirror, s.origin.Quorum())
	for _, step := range []struct {
		name string
		run  func(s serving)
	}{
		{"answers", serving.answers}, {"order", serving.order}, {"ephemerals", serving.ephemerals},
		{"a session moves", serving.moves}, {"leaders die", serving.leadersDie}, {"the same in the end", serving.same},
	} {
		t.Run(step.name, func(t *testing.T) {
			s := s
			s.T = t
			step.run(s)
		})
	}
}

// here connects to a server of zk-lite; there to one of ZooKeeper.
func (s serving) here(n int) *cluster.Conn {
	s.Helper()
	return s.keep(s.mirror.Server(n).Connect(s.T, cluster.ConnectOptions{Timeout: 6 * time.Second}))
}

func (s serving) there() (c *cluster.Conn) {
	s.Helper()
	wait.Succeeds(s.T, "ZooKeeper takes a client", func() (err error) {
		c, err = cluster.Dial(s.origin.Leader().Address, cluster.ConnectOptions{Timeout: 6 * time.Second})
		return err
	})
	s.Cleanup(c.Drop)
	return s.keep(c)
}

func (s serving) keep(c *cluster.Conn) *cluster.Conn {
	go ping(c, time.Second)
	return c
}

// do sends a request that has this outcome.
func (s serving) do(c *cluster.Conn, want znode.Error, op wire.OpCode, q wire.Request) wire.Response {
	s.Helper()
	r, err := c.Do(op, q)
	if !errors.Is(err, want.Err()) || want == znode.OK && err != nil {
		s.Fatalf("%v: %v, want %v", op, err, want.Name())
	}
	return r
}

func (s serving) sync(c *cluster.Conn) {
	s.Helper()
	s.do(c, znode.OK, wire.OpSync, &wire.SyncRequest{Path: "/"})
}

func (s serving) data(c *cluster.Conn, path string, watch bool) string {
	s.Helper()
	r, ok := s.do(c, znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: path, Watch: watch}).(*wire.GetDataResponse)
	if !ok {
		s.Fatalf("getData of %s: no data", path)
	}
	return string(r.Data)
}

func set(path, data string, version znode.Version) *wire.SetDataRequest {
	return &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version}
}

// answers compares the answers to the same requests, at other znodes, of both sides.
func (s serving) answers() {
	a, b := s.here(1), s.there()
	secret := acl(znode.PermAll, "digest", "someone:else")
	asked := func(base string) []wire.MultiOp {
		return []wire.MultiOp{
			{Type: wire.OpCreate, Request: create(base, []byte("1"), znode.Persistent)},
			{Type: wire.OpCreate, Request: create(base, nil, znode.Persistent)},
			{Type: wire.OpCreate2, Request: create(base+"/s-", []byte{}, znode.PersistentSequential)},
			{Type: wire.OpCreate2, Request: create(base+"/e-", nil, znode.EphemeralSequential)},
			{Type: wire.OpCreateContainer, Request: create(base+"/c", nil, znode.Container)},
			{Type: wire.OpSetData, Request: set(base, "2", 0)},
			{Type: wire.OpSetData, Request: set(base, "3", 0)},
			{Type: wire.OpSetACL, Request: &wire.SetACLRequest{Path: base + "/c", ACL: []znode.ACL{secret}, Version: -1}},
			{Type: wire.OpCreate, Request: create(base+"/c/x", nil, znode.Persistent)},
			{Type: wire.OpDelete, Request: &wire.DeleteRequest{Path: base, Version: -1}},
			{Type: wire.OpDelete, Request: &wire.DeleteRequest{Path: base + "/none", Version: -1}},
			{Type: wire.OpMulti, Request: &wire.MultiRequest{Ops: []wire.MultiOp{
				{Type: wire.OpCreate, Request: create(base+"/m", nil, znode.Persistent)},
				{Type: wire.OpCreate2, Request: create(base+"/m/n", nil, znode.Persistent)},
				{Type: wire.OpSetData, Request: set(base+"/m", "x", 0)},
				{Type: wire.OpCheck, Request: &wire.CheckRequest{Path: base, Version: 1}},
				{Type: wire.OpDelete, Request: &wire.DeleteRequest{Path: base + "/m/n", Version: 0}},
			}}},
			{Type: wire.OpMulti, Request: &wire.MultiRequest{Ops: []wire.MultiOp{
				{Type: wire.OpCreate, Request: create(base+"/o", nil, znode.Persistent)},
				{Type: wire.OpCheck, Request: &wire.CheckRequest{Path: base, Version: 7}},
				{Type: wire.OpDelete, Request: &wire.DeleteRequest{Path: base + "/m", Version: 0}},
			}}},
		}
	}
	ours, theirs := asked("/here"), asked("/there")
	for i := range ours {
		got, err := a.Do(ours[i].Type, ours[i].Request)
		want, wantErr := b.Do(theirs[i].Type, theirs[i].Request)
		if x, y := plain(got), plain(want); x != y || !errors.Is(err, wantErr) {
			s.Errorf("request %d, %v: %s, %v; ZooKeeper answers %s, %v", i, ours[i].Type, x, err, y, wantErr)
		}
	}
	r := s.do(a, znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: znode.ConfigPath})
	if text := string(r.(*wire.GetDataResponse).Data); strings.Count(text, "server.") != 3 || strings.Contains(text, s.origin.Servers[0].Address) {
		s.Errorf("the configuration is %q, want the servers of zk-lite", text)
	}
}

// plain shows an answer without what differs between two znodes: zxids, times, owners and their names.
func plain(r wire.Response) string {
	clear := func(st *znode.Stat) {
		st.Czxid, st.Mzxid, st.Pzxid, st.Ctime, st.Mtime = 0, 0, 0, 0, 0
		if st.EphemeralOwner > 0 {
			st.EphemeralOwner = 1
		}
	}
	text := ""
	switch r := r.(type) {
	case *wire.Create2Response:
		clear(&r.Stat)
		text = fmt.Sprintf("%s %+v", r.Path, r.Stat)
	case *wire.SetDataResponse:
		clear(&r.Stat)
		text = fmt.Sprintf("%+v", r.Stat)
	case *wire.SetACLResponse:
		clear(&r.Stat)
		text = fmt.Sprintf("%+v", r.Stat)
	case *wire.MultiResponse:
		for i := range r.Results {
			text += fmt.Sprintf("; %v %v %s", r.Results[i].Type, r.Results[i].Err, plain(r.Results[i].Response))
		}
	case *wire.CreateResponse:
		text = r.Path
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "/here", ""), "/there", "")
}

// order: a client's requests at zk-lite keep their order, a sync shows what ZooKeeper's clients have written, and
// watches of either side see the writes of the other.
func (s serving) order() {
	a, other, b := s.here(2), s.here(3), s.there()
	s.do(a, znode.OK, wire.OpCreate, create("/order", []byte("0"), znode.Persistent))
	s.sync(other)
	s.data(other, "/order", true)
	s.data(b, "/order", true)
	var reads []*cluster.Call
	for i := range 500 {
		a.Send(wire.OpSetData, set("/order", fmt.Sprint(i), -1))
		reads = append(reads, a.Send(wire.OpGetData, &wire.GetDataRequest{Path: "/order"}))
	}
	for i, call := range reads {
		r, err := call.Wait()
		if got, ok := r.(*wire.GetDataResponse); err != nil || !ok || string(got.Data) != fmt.Sprint(i) {
			s.Fatalf("read %d: %v, %v, want the write before it", i, r, err)
		}
	}
	for name, c := range map[string]*cluster.Conn{"zk-lite": other, "ZooKeeper": b} {
		wait.Succeeds(s.T, "the watch at "+name, func() error {
			for _, item := range c.Items() {
				if item.Call == nil && item.Event.Path == "/order" {
					return nil
				}
			}
			return errors.New("no event")
		})
	}
	for i := range 100 {
		want := fmt.Sprintf("there %d", i)
		s.do(b, znode.OK, wire.OpSetData, set("/order", want, -1))
		s.sync(other)
		if got := s.data(other, "/order", false); got != want {
			s.Fatalf("after a sync: %q, want %q", got, want)
		}
	}
}

// ephemerals live as long as their client is heard at zk-lite, and then not much longer.
func (s serving) ephemerals() {
	a, b := s.here(1), s.there()
	s.do(a, znode.OK, wire.OpCreate, create("/lives", nil, znode.Ephemeral))
	gone, err := cluster.Dial(s.mirror.Server(1).Addr(), cluster.ConnectOptions{Timeout: 4 * time.Second})
	if err != nil {
		s.Fatal(err)
	}
	s.keep(gone)
	s.do(gone, znode.OK, wire.OpCreate, create("/dies", nil, znode.Ephemeral))
	closed := s.here(3)
	s.do(closed, znode.OK, wire.OpCreate, create("/closed", nil, znode.Ephemeral))
	if err := closed.Close(); err != nil {
		s.Errorf("closing: %v, want no error", err)
	}
	s.sync(b)
	s.do(b, znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/closed"})
	s.do(b, znode.OK, wire.OpExists, &wire.ExistsRequest{Path: "/dies"})
	s.do(gone, znode.OK, wire.OpExists, &wire.ExistsRequest{Path: "/dies"}) // it is heard, however late its pings are
	gone.Drop()
	died := time.Now()
	wait.Succeeds(s.T, "the end of a session", func() error {
		if _, err := b.Do(wire.OpExists, &wire.ExistsRequest{Path: "/dies"}); !errors.Is(err, znode.ErrNoNode) {
			return fmt.Errorf("%w, want %w", err, znode.ErrNoNode)
		}
		return nil
	})
	if took := time.Since(died); took < 2*time.Second {
		s.Errorf("it ended %v after its client, want its timeout", took)
	}
	wait.Succeeds(s.T, "longer than the other's timeout", func() error {
		if time.Since(died) < 9*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	s.do(b, znode.OK, wire.OpExists, &wire.ExistsRequest{Path: "/lives"})
	s.do(a, znode.OK, wire.OpSetData, set("/lives", "yes", -1))
}

// moves: a client of ZooKeeper goes on at zk-lite with its session, its ephemerals and its identity.
func (s serving) moves() {
	b := s.there()
	s.do(b, znode.OK, wire.OpCreate, create("/moved", nil, znode.Ephemeral))
	for n := 1; n <= 3; n++ { // and from each server to the next
		a := s.keep(s.mirror.Server(n).Connect(s.T, cluster.ConnectOptions{Timeout: 6 * time.Second, Session: b.State()}))
		if a.Session.ID != b.Session.ID {
			s.Fatalf("session %v at server %d, want %v", a.Session.ID, n, b.Session.ID)
		}
		s.do(a, znode.OK, wire.OpSetData, set("/moved", fmt.Sprint(n), -1))
	}
	wrong := b.State()
	wrong.Password = make([]byte, len(wrong.Password))
	wrong.Password[0] = 1
	wait.Succeeds(s.T, "a wrong password is refused", func() error {
		if _, err := cluster.Dial(s.mirror.Server(1).Addr(), cluster.ConnectOptions{Session: wrong}); !errors.Is(err, cluster.ErrExpired) {
			return fmt.Errorf("%w, want %w", err, cluster.ErrExpired)
		}
		return nil
	})
	var back *cluster.Conn
	wait.Succeeds(s.T, "back at ZooKeeper", func() (err error) {
		back, err = cluster.Dial(s.origin.Leader().Address,
			cluster.ConnectOptions{Timeout: 6 * time.Second, Session: b.State()})
		if errors.Is(err, cluster.ErrExpired) {
			s.Fatalf("back at ZooKeeper: %v, want the session", err)
		}
		return err
	})
	s.do(back, znode.OK, wire.OpSetData, set("/moved", "back", -1))
	if err := back.Close(); err != nil {
		s.Error(err)
	}
}

// leadersDie: after the death of either leader clients go on, with their sessions and ephemerals.
func (s serving) leadersDie() {
	a := s.here(1)
	s.do(a, znode.OK, wire.OpCreate, create("/survives", nil, znode.Ephemeral))
	s.do(a, znode.OK, wire.OpCreate, create("/counts", []byte("0"), znode.Persistent))
	kills := []func(){
		func() {
			leader := s.origin.Leader()
			leader.Kill()
			leader.Start()
		},
		func() { s.mirror.Leader().Restart() },
	}
	for i, kill := range kills {
		kill()
		want := fmt.Sprint("after ", i)
		wait.Succeeds(s.T, "a write "+want, func() error {
			select {
			case <-a.Ended():
				for n := range 3 {
					c, err := cluster.Dial(s.mirror.Server(n+1).Addr(), cluster.ConnectOptions{Timeout: 6 * time.Second, Session: a.State()})
					if errors.Is(err, cluster.ErrExpired) {
						s.Fatalf("the session has expired %s", want)
					}
					if err == nil {
						s.Cleanup(c.Drop)
						a = s.keep(c)
						break
					}
				}
			default:
			}
			if _, err := a.Do(wire.OpSetData, set("/counts", want, -1)); err != nil {
				return err
			}
			_, err := a.Do(wire.OpExists, &wire.ExistsRequest{Path: "/survives"})
			if errors.Is(err, znode.ErrNoNode) {
				s.Fatalf("the ephemeral has gone %s", want)
			}
			return err
		})
		b := s.there()
		s.sync(b)
		if got := s.data(b, "/counts", false); got != want {
			s.Errorf("ZooKeeper has %q, want %q", got, want)
		}
	}
}

// same: all servers of both sides show the same, and no digest has differed.
func (s serving) same() {
	admin := func(c *cluster.Conn, credentials string) *cluster.Conn {
		s.do(c, znode.OK, wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte(credentials)})
		s.sync(c)
		return c
	}
	want, err := admin(s.there(), zookeeper.Superuser).Dump("/")
	if err != nil {
		s.Fatal(err)
	}
	for n := 1; n <= 3; n++ {
		got, err := admin(s.here(n), cluster.SuperCredentials).Dump("/")
		if err != nil {
			s.Fatal(err)
		}
		if x, y := shownOf(got), shownOf(want); x != y {
			s.Errorf("server %d shows\n%s\nwant\n%s", n, x, y)
		}
	}
	if m := mirrorOf(s.T, s.mirror); m.Digests.Compared == 0 || m.Digests.Differing != 0 {
		s.Errorf("%s, want digests, none that differs", show(m))
	}
}

func shownOf(all []cluster.Znode) string {
	var b strings.Builder
	for i := range all {
		if !strings.HasPrefix(all[i].Path, znode.SystemPath) && all[i].Path != "/" {
			fmt.Fprintln(&b, all[i].String())
		}
	}
	return b.String()
}
