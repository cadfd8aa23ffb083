//go:build slow || privileged

package failover_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// watchSeed is for what changes while the watcher is away.
const watchSeed = 1

// oneShot is a watch that a client has left, and what has happened to it.
type oneShot struct {
	path  string
	kind  string // "data", "exist" (of a missing znode) or "child"
	there bool   // whether the znode is
	kids  int
	// first is the event of the first change since the watch was left; 0: none. A client that
	// was connected got this one.
	first znode.EventType
	// fired are the events that the client got, over all its connections.
	fired []znode.EventType
}

// changed notes a change.
func (w *oneShot) changed(typ znode.EventType) {
	if w.first == 0 {
		w.first = typ
	}
}

// missed is the event that setWatches sends to a client that sets the watch again; 0: none.
func (w *oneShot) missed() znode.EventType {
	switch {
	case w.kind == "exist" && w.there:
		return znode.EventCreated
	case w.kind == "exist" || w.first == 0:
		return 0
	case !w.there:
		return znode.EventDeleted
	case w.kind == "child":
		return znode.EventChildrenChanged
	}
	return znode.EventDataChanged
}

// rewatched is a client whose server dies, and another that changes the watched znodes.
type rewatched struct {
	t       *testing.T
	e       *cluster.Ensemble
	rng     *rand.Rand
	root    string
	watches []*oneShot
	changer *cluster.Conn
	home    *cluster.Server // of the changer
}

// TestFailover_SetWatches_MissedArriveOnce: the server of a client with many watches is killed while they fire. The
// client reconnects to another server and sets those again that have not fired. Over both connections every one-shot
// watch fires once if its znode has changed, with the right event, and not otherwise; persistent watches are set again.
func TestFailover_SetWatches_MissedArriveOnce(t *testing.T) {
	t.Parallel()
	// A busy machine's elections would end the watcher's connection before its time; a
	// leader that dies is noticed at once all the same.
	e := start(t, 3, cluster.Options{Config: map[string]string{"raft.electionTimeout": "4000"}})
	rng := rand.New(rand.NewPCG(watchSeed, 1))
	before, after := 0, 0
	for round := range rounds(t, 6) {
		victim := e.Leader()
		if round%2 == 1 {
			victim = e.Followers()[rng.IntN(2)]
		}
		r := &rewatched{t: t, e: e, rng: rng, root: fmt.Sprintf("/again-%d", round),
			home: e.Server(victim.ID%3 + 1)}
		r.changer = r.home.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
		b, a := r.run(victim)
		before, after = before+b, after+a
		victim.Start()
		e.WaitServing()
		if t.Failed() {
			break
		}
	}
	t.Logf("seed %d: %d watches fired before the connection ended, %d by setWatches", watchSeed, before, after)
	if before == 0 || after == 0 {
		t.Error("watches must fire both before the connection ends and after, or nothing is shown")
	}
	e.CheckReplicas()
}

func (r *rewatched) run(victim *cluster.Server) (before, after int) {
	r.prepare()
	c := victim.Connect(r.t, cluster.ConnectOptions{Timeout: sessionTimeout})
	r.leave(c)
	half := r.rng.IntN(len(r.watches))
	for i, w := range r.watches {
		if i == half {
			victim.Kill()
		}
		r.change(w)
	}
	<-c.Ended()
	before = r.take(c)
	r.compare("while its connection lived", func(w *oneShot) []znode.EventType {
		if len(w.fired) == 0 {
			return nil // it may have come too late
		}
		return []znode.EventType{w.first}
	})
	c = r.comeBack(c.State())
	due := map[*oneShot]znode.EventType{}
	for _, w := range r.watches {
		if typ := w.missed(); len(w.fired) == 0 && typ != 0 {
			due[w] = typ
		}
	}
	r.setWatches(c)
	after = r.take(c)
	if after != len(due) {
		r.t.Errorf("setWatches told of %d changes, want %d", after, len(due))
	}
	r.compare("after setWatches", func(w *oneShot) []znode.EventType {
		if due[w] != 0 {
			return []znode.EventType{due[w]}
		}
		return w.fired[:min(1, len(w.fired))]
	})
	r.tripAll(c)
	return before, after
}

// prepare makes the znodes.
func (r *rewatched) prepare() {
	mustCreate(r.t, r.changer, r.root, nil)
	for i := range 20 {
		for _, kind := range []string{"data", "exist", "child"} {
			w := &oneShot{path: fmt.Sprintf("%s/%s-%d", r.root, kind, i), kind: kind, there: kind != "exist"}
			if w.there {
				mustCreate(r.t, r.changer, w.path, nil)
			}
			r.watches = append(r.watches, w)
		}
	}
	for _, path := range []string{"/lasting", "/below", "/below/a", "/below/b"} {
		mustCreate(r.t, r.changer, r.root+path, nil)
	}
	r.rng.Shuffle(len(r.watches), func(i, j int) {
		r.watches[i], r.watches[j] = r.watches[j], r.watches[i]
	})
}

// leave leaves the watches.
func (r *rewatched) leave(c *cluster.Conn) {
	r.t.Helper()
	calls := []*cluster.Call{c.Send(wire.OpSync, &wire.SyncRequest{Path: "/"}),
		c.Send(wire.OpAddWatch, &wire.AddWatchRequest{Path: r.root + "/lasting", Mode: wire.AddWatchPersistent}),
		c.Send(wire.OpAddWatch, &wire.AddWatchRequest{Path: r.root + "/below",
			Mode: wire.AddWatchPersistentRecursive})}
	for _, w := range r.watches {
		switch w.kind {
		case "data":
			calls = append(calls, c.Send(wire.OpGetData, &wire.GetDataRequest{Path: w.path, Watch: true}))
		case "exist":
			calls = append(calls, c.Send(wire.OpExists, &wire.ExistsRequest{Path: w.path, Watch: true}))
		default:
			calls = append(calls, c.Send(wire.OpGetChildren,
				&wire.GetChildrenRequest{Path: w.path, Watch: true}))
		}
	}
	for _, call := range calls {
		if _, err := call.Wait(); err != nil && !errors.Is(err, znode.ErrNoNode) {
			r.t.Fatalf("leaving watches: %s: %v", call.Op, err)
		}
	}
	c.Take()
}

// do changes something, over as many connections as it takes; an edit that turns out to have
// been made by the try before is as good.
func (r *rewatched) do(op wire.OpCode, body wire.Request) {
	r.t.Helper()
	wait.Succeeds(r.t, "a change is made", func() error {
		_, err := r.changer.Do(op, body)
		if errors.Is(err, znode.ErrNodeExists) || errors.Is(err, znode.ErrNoNode) {
			return nil
		}
		if cluster.IsUnknown(err) {
			if c, dialErr := cluster.Dial(r.home.Addr(), cluster.ConnectOptions{Timeout: sessionTimeout}); dialErr == nil {
				r.changer = c
			}
		}
		return err
	})
}

func (r *rewatched) create(path string) {
	r.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: znode.OpenACL})
}

func (r *rewatched) remove(path string) {
	r.do(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: znode.AnyVersion})
}

func (r *rewatched) set(path string) {
	r.do(wire.OpSetData, &wire.SetDataRequest{Path: path, Version: znode.AnyVersion})
}

// change changes the znode of a watch up to two times.
func (r *rewatched) change(w *oneShot) {
	for range r.rng.IntN(3) {
		switch {
		case w.kind == "child" && w.there && r.rng.IntN(4) > 0:
			w.kids++
			r.create(fmt.Sprintf("%s/kid-%d", w.path, w.kids))
			w.changed(znode.EventChildrenChanged)
		case w.kind == "child" && w.there && w.kids > 0:
			r.remove(fmt.Sprintf("%s/kid-%d", w.path, w.kids))
			w.kids--
		case w.there && w.kind == "data" && r.rng.IntN(2) == 0:
			r.set(w.path)
			w.changed(znode.EventDataChanged)
		case w.there:
			r.remove(w.path)
			w.there = false
			w.changed(znode.EventDeleted)
		default:
			r.create(w.path)
			w.there = true
			w.changed(znode.EventCreated)
		}
	}
}

// take gives the events that have come to their watches, and returns how many.
func (r *rewatched) take(c *cluster.Conn) (n int) {
	r.t.Helper()
	for _, item := range c.Take() {
		if item.Call != nil {
			continue
		}
		i := slices.IndexFunc(r.watches, func(w *oneShot) bool { return w.path == item.Event.Path })
		if i < 0 {
			r.t.Errorf("an event %v of %s, which nobody watches", item.Event.Type, item.Event.Path)
			continue
		}
		r.watches[i].fired = append(r.watches[i].fired, item.Event.Type)
		n++
	}
	return n
}

// compare checks the events of each watch.
func (r *rewatched) compare(when string, want func(*oneShot) []znode.EventType) {
	r.t.Helper()
	for _, w := range r.watches {
		if x := want(w); !slices.Equal(x, w.fired) {
			r.t.Errorf("%s: the watch on %s told %v, want %v", when, w.path, w.fired, x)
		}
	}
}

// comeBack continues the session at a running server.
func (r *rewatched) comeBack(s cluster.Session) (c *cluster.Conn) {
	r.t.Helper()
	wait.Succeeds(r.t, "the watcher's session goes on", func() (err error) {
		all := r.e.Running()
		c, err = cluster.Dial(all[r.rng.IntN(len(all))].Addr(),
			cluster.ConnectOptions{Timeout: sessionTimeout, Session: s})
		return err
	})
	r.t.Cleanup(c.Drop)
	return c
}

// setWatches sets those watches again that have not fired, as clients do.
func (r *rewatched) setWatches(c *cluster.Conn) {
	r.t.Helper()
	q := &wire.SetWatches2Request{PersistentWatches: []string{r.root + "/lasting"},
		PersistentRecursiveWatches: []string{r.root + "/below"}}
	q.RelativeZxid = c.State().LastZxid
	// setWatches must report everything that has happened by now, so the server must know of
	// it.
	if _, err := c.Do(wire.OpSync, &wire.SyncRequest{Path: "/"}); err != nil {
		r.t.Fatalf("sync: %v", err)
	}
	for _, w := range r.watches {
		switch {
		case len(w.fired) > 0:
		case w.kind == "data":
			q.DataWatches = append(q.DataWatches, w.path)
		case w.kind == "exist":
			q.ExistWatches = append(q.ExistWatches, w.path)
		default:
			q.ChildWatches = append(q.ChildWatches, w.path)
		}
	}
	if _, err := c.SendAs(wire.XidSetWatches, wire.OpSetWatches2, q).Wait(); err != nil {
		r.t.Fatalf("setWatches2: %v", err)
	}
}

// tripAll changes everything: what has fired must not fire again, and what has not must, once.
func (r *rewatched) tripAll(c *cluster.Conn) {
	r.t.Helper()
	want := map[*oneShot][]znode.EventType{}
	for _, w := range r.watches {
		want[w] = w.fired
		typ := znode.EventDataChanged
		switch {
		case !w.there:
			r.create(w.path)
			typ = znode.EventCreated
		case w.kind == "child":
			r.create(w.path + "/last")
			typ = znode.EventChildrenChanged
		default:
			r.set(w.path)
		}
		if len(w.fired) == 0 {
			want[w] = []znode.EventType{typ}
		}
	}
	for _, path := range []string{"/lasting", "/below/a", "/below/b", "/lasting"} {
		r.set(r.root + path)
	}
	if _, err := c.Do(wire.OpSync, &wire.SyncRequest{Path: "/"}); err != nil {
		r.t.Fatalf("sync: %v", err)
	}
	var lasting []string
	for _, item := range c.Items() {
		if path := item.Event.Path; strings.HasPrefix(path, r.root+"/lasting") || strings.HasPrefix(path, r.root+"/below") {
			lasting = append(lasting, strings.TrimPrefix(path, r.root))
		}
	}
	if !slices.Equal(lasting, []string{"/lasting", "/below/a", "/below/b", "/lasting"}) {
		r.t.Errorf("the lasting watches told of %v", lasting)
	}
	for _, item := range c.Take() {
		for _, w := range r.watches {
			if item.Call == nil && w.path == item.Event.Path {
				w.fired = append(w.fired, item.Event.Type)
			}
		}
	}
	r.compare("after a change of everything", func(w *oneShot) []znode.EventType { return want[w] })
}
