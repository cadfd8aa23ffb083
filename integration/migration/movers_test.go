//go:build interop

package migration_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

// mover is a client that knows the servers of both sides. It holds a lock, an ephemeral and watches, and creates
// sequential znodes, one after the other.
//
// Clients of other languages print what happens, a line each, after their name, and so do those of Go:
//
//	holds SESSION            it has its lock, its ephemeral and its watches, and begins to write
//	ack PATH ZXID TIME       a znode was acknowledged, at a time in microseconds of the machine's clock
//	state STATE              of the session or the connection, by the client's own name
//	saw data, saw child      the watches have fired
//	stopped SESSION          it writes no more, and still holds all
type mover struct {
	name string

	mu     sync.Mutex // protects the fields below
	acked  []ack
	states []string
	said   map[string]string // the other words, by the first
	// lock is the znode of its lock, and ids are the czxids of that znode and of the ephemeral: znodes that were made
	// again have others.
	lock string
	ids  [2]client.Zxid
}

// ack is a create that was acknowledged.
type ack struct {
	path string
	zxid client.Zxid
	at   time.Time
}

// hear takes what a mover says.
func (m *mover) hear(t testing.TB, words ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(words) == 4 && words[0] == "ack":
		zxid, err1 := strconv.ParseInt(words[2], 10, 64)
		micros, err2 := strconv.ParseInt(words[3], 10, 64)
		if err1 != nil || err2 != nil {
			t.Errorf("%s says %q, want a zxid and a time", m.name, words)
		}
		m.acked = append(m.acked, ack{words[1], client.Zxid(zxid), time.UnixMicro(micros)})
	case len(words) == 2 && words[0] == "state":
		m.states = append(m.states, words[1])
	case len(words) == 2 && words[0] == "saw":
		m.said["saw "+words[1]] = words[1]
	case len(words) == 2:
		m.said[words[0]] = words[1]
	default:
		t.Errorf("%s says %q, which means nothing", m.name, words)
	}
}

// writes is how many of its creates were acknowledged.
func (m *mover) writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.acked)
}

// awaits waits until a mover has said something.
func (m *mover) awaits(t testing.TB, what string) (said string) {
	t.Helper()
	wait.Succeeds(t, m.name+" says "+what, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		var ok bool
		if said, ok = m.said[what]; !ok {
			return fmt.Errorf("it said %v, its states are %v", m.said, m.states)
		}
		return nil
	})
	return said
}

// movers are all of them.
type movers struct {
	t    *testing.T
	all  []*mover
	stop func() // ends their writes, and waits for that; they still hold all
}

// foreigners are the names of movers that are not of Go.
var foreigners = []string{"kazoo", "java", "curator"}

// startMovers starts so many clients of Go, and one of each of the others if they are wanted. The first, of Go, tries
// servers again every 10 ms, so that it shows when the first write could be acknowledged; the others have the settings
// of their libraries.
func startMovers(t *testing.T, servers string, n int, others bool) *movers {
	t.Helper()
	c := connected(t, servers)
	for _, path := range []string{"/q", "/watched"} {
		if _, _, err := c.Create(t.Context(), path, nil, client.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	m := &movers{t: t}
	add := func(name string) *mover {
		if _, _, err := c.Create(t.Context(), "/lock-"+name, nil, client.Persistent); err != nil {
			t.Fatal(err)
		}
		one := &mover{name: name, said: map[string]string{}}
		m.all = append(m.all, one)
		return one
	}
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	t.Cleanup(writing.Wait)
	for i := range n {
		one := add(fmt.Sprintf("go-%d", i))
		var o []client.Option
		if i == 0 {
			o = append(o, client.WithBackoff(10*time.Millisecond, 10*time.Millisecond))
		}
		own := connected(t, servers, o...)
		writing.Go(func() {
			if err := one.goes(ctx, t, own); err != nil {
				t.Errorf("%s: %v", one.name, err)
			}
		})
	}
	var programs []*cluster.Program
	if others {
		hear := map[string]*mover{}
		for _, name := range foreigners {
			hear[name] = add(name)
		}
		for _, args := range [][]string{cluster.Kazoo(t, "kazoo_mover.py"),
			append(cluster.Java(t, "CuratorMover.java"), "CuratorMover")} {
			programs = append(programs, cluster.StartProgram(t, func(line string) {
				if words := strings.Fields(line); len(words) > 1 && hear[words[0]] != nil {
					hear[words[0]].hear(t, words[1:]...)
				} else {
					t.Errorf("a program says %q, want the name of a mover first", line)
				}
			}, append(args, servers)...))
		}
	}
	m.stop = func() {
		cancel()
		for _, p := range programs {
			p.Say("stop")
		}
		writing.Wait()
		for _, one := range m.all {
			one.awaits(t, "stopped")
		}
	}
	for _, one := range m.all {
		one.awaits(t, "holds")
		one.lock, one.ids = one.holds(t, c)
	}
	return m
}

// connected is a client of Go that ends with the test.
func connected(t *testing.T, servers string, o ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), servers, append(o, client.WithSessionTimeout(30*time.Second))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// goes is what a mover of Go does until ctx ends.
func (m *mover) goes(ctx context.Context, t *testing.T, c *client.Client) error {
	if _, err := recipes.NewMutex(c, "/lock-"+m.name).Lock(t.Context()); err != nil {
		return err
	}
	_, _, err1 := c.Create(t.Context(), "/e-"+m.name, nil, client.Ephemeral)
	_, _, data, err2 := c.GetW(t.Context(), "/watched")
	_, _, children, err3 := c.ChildrenW(t.Context(), "/watched")
	if err := cmp.Or(err1, err2, err3); err != nil {
		return err
	}
	states := c.States()
	go func() { // until the client is closed, as the next ones
		for s := range states.C() {
			m.hear(t, "state", s.State.String())
		}
	}()
	for what, w := range map[string]*client.Watch{"data": data, "child": children} {
		go func() {
			if e := <-w.C(); e.Type == client.EventDataChanged || e.Type == client.EventChildrenChanged {
				m.hear(t, "saw", what)
			}
		}()
	}
	m.hear(t, "holds", c.SessionID().String())
	for ctx.Err() == nil {
		// The outcome of one whose connection broke is not known.
		if path, stat, err := c.Create(ctx, "/q/n-", []byte("data"), client.PersistentSequential); err == nil {
			m.hear(t, "ack", path, fmt.Sprint(int64(stat.Czxid)), fmt.Sprint(time.Now().UnixMicro()))
		}
	}
	m.hear(t, "stopped", c.SessionID().String())
	return nil
}

// holds returns the one znode of a mover's lock, and the czxids of that and of its ephemeral, which must be its
// session's.
func (m *mover) holds(t *testing.T, c *client.Client) (lock string, ids [2]client.Zxid) {
	t.Helper()
	if err := c.Sync(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	names, _, err := c.Children(t.Context(), "/lock-"+m.name)
	if err != nil || len(names) != 1 {
		t.Errorf("the lock of %s: %v, %v; want one znode", m.name, names, err)
		return "", ids
	}
	lock = "/lock-" + m.name + "/" + names[0]
	for i, path := range []string{lock, "/e-" + m.name} {
		_, stat, err := c.Exists(t.Context(), path)
		if owner := stat.EphemeralOwner.String(); err != nil || owner != m.awaits(t, "holds") {
			t.Errorf("%s is of session %s, %v; want that of %s, %s", path, owner, err, m.name, m.awaits(t, "holds"))
		}
		ids[i] = stat.Czxid
	}
	return lock, ids
}

// progress waits until so many more znodes were acknowledged in all.
func (m *movers) progress(n int) {
	m.t.Helper()
	sum := func() (n int) {
		for _, one := range m.all {
			n += one.writes()
		}
		return n
	}
	want := sum() + n
	wait.Until(m.t, "znodes are created", func() bool { return sum() >= want })
}

// each waits until every mover has so many more acknowledged znodes.
func (m *movers) each(n int) {
	m.t.Helper()
	for _, one := range m.all {
		want := one.writes() + n
		wait.Succeeds(m.t, one.name+" writes", func() error {
			if one.writes() < want {
				one.mu.Lock()
				defer one.mu.Unlock()
				return fmt.Errorf("its states are %v", one.states)
			}
			return nil
		})
	}
}

// check has the watches fire, ends the writes, and compares what the clients remember with what the servers show.
func (m *movers) check(servers string) {
	m.t.Helper()
	c := connected(m.t, servers)
	_, err1 := c.Set(m.t.Context(), "/watched", []byte("after"), client.AnyVersion)
	_, _, err2 := c.Create(m.t.Context(), "/watched/after", nil, client.Persistent)
	if err := cmp.Or(err1, err2); err != nil {
		m.t.Fatal(err)
	}
	for _, one := range m.all {
		one.awaits(m.t, "saw data")
		one.awaits(m.t, "saw child")
	}
	m.stop()
	var all []ack
	for _, one := range m.all {
		all = append(all, one.check(m.t, c)...)
	}
	names, _, err := c.Children(m.t.Context(), "/q")
	if err != nil {
		m.t.Fatal(err)
	}
	there, lost := map[string]bool{}, 0
	for _, name := range names {
		there["/q/"+name] = true
	}
	slices.SortFunc(all, func(a, b ack) int { return cmp.Compare(a.zxid, b.zxid) })
	for i, a := range all {
		if i > 0 && (a.path <= all[i-1].path || a.zxid == all[i-1].zxid) { // numbers have ten digits
			m.t.Errorf("%s has zxid %v, and %s has %v; want numbers in the order of zxids", a.path, a.zxid,
				all[i-1].path, all[i-1].zxid)
		}
		if !there[a.path] {
			lost++
		}
	}
	m.t.Logf("%d acknowledged, %d of them missing, %d there", len(all), lost, len(names))
	if lost > 0 {
		m.t.Errorf("%d acknowledged znodes are missing", lost)
	}
}

// check checks a mover that has stopped: its session, its lock, its ephemeral, and the order of its writes, which it
// returns.
func (m *mover) check(t *testing.T, c *client.Client) []ack {
	t.Helper()
	if lock, ids := m.holds(t, c); lock != m.lock || ids != m.ids {
		t.Errorf("the lock of %s is %s with czxids %v, and was %s with %v", m.name, lock, ids, m.lock, m.ids)
	}
	if was, is := m.awaits(t, "holds"), m.awaits(t, "stopped"); was != is {
		t.Errorf("%s has session %s, and had %s", m.name, is, was)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(m.states, func(s string) bool { return s == "LOST" || strings.EqualFold(s, "expired") }) {
		t.Errorf("the states of %s are %v, want none that is lost", m.name, m.states)
	}
	for i, a := range m.acked {
		if i > 0 && a.zxid <= m.acked[i-1].zxid {
			t.Errorf("%s created %s with zxid %v after %v", m.name, a.path, a.zxid, m.acked[i-1])
		}
	}
	return m.acked
}
