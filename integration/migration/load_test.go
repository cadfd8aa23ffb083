//go:build interop

package migration_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// load is what clients do to an ensemble: every type of transaction and of failure, at random.
type load struct {
	tb      testing.TB
	addrs   []string
	seed    uint64
	old     bool // 3.4, which has neither containers nor TTLs, create2, reconfig
	workers int
	rate    int // requests per second in all; 0: as many as the servers answer
	// strict makes every ACL a common one. A ZooKeeper that starts from a fuzzy snapshot may lack the ACL that a znode
	// there has for the first time, shows another or none, and from a setData of such a znode on never starts again.
	strict  bool
	root    bool // also writes the data of "/", whose digests are wrong at the origin while others write its children
	members bool // also adds and removes an observer (reconfig)

	stop    chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex // protects the fields below
	counts map[string]int
	// asked has the ACLs that were asked for, by path; of a sequential znode without its number.
	asked map[string][][]znode.ACL
	// kept is the data of the znodes whose create was acknowledged, and that no client touches again.
	kept map[string]string
}

// ahead is how many requests a worker sends before the first is answered.
const ahead = 40

// startLoad starts clients of an ensemble that write until end.
func startLoad(tb testing.TB, e *zookeeper.Ensemble, version string, l *load) *load {
	tb.Helper()
	l.tb, l.seed, l.old = tb, seed.Of(tb), version == zookeeper.V34
	for _, s := range e.Servers {
		l.addrs = append(l.addrs, s.Address)
	}
	l.stop, l.counts, l.kept = make(chan struct{}), map[string]int{}, map[string]string{}
	if !l.strict {
		l.asked = map[string][][]znode.ACL{}
	}
	for i := range l.workers {
		w := &worker{load: l, base: fmt.Sprintf("/w%d", i), rand: rand.New(rand.NewPCG(l.seed, uint64(i)))}
		l.running.Go(w.run)
	}
	l.running.Go(l.openSessions)
	if l.members && !l.old {
		l.running.Go(l.reconfigure)
	}
	return l
}

// end ends the clients, and waits for them. Half of their sessions are closed, the others will expire.
func (l *load) end() {
	l.tb.Helper()
	close(l.stop)
	l.running.Wait()
	l.tb.Logf("%d requests: %s", l.requests(), l)
}

func (l *load) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

func (l *load) requests() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, count := range l.counts {
		n += count
	}
	return n
}

func (l *load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(l.counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, l.counts[name]))
	}
	return strings.Join(parts, ", ")
}

// after waits until the servers have answered n requests.
func (l *load) after(n int) {
	l.tb.Helper()
	wait.Succeeds(l.tb, fmt.Sprintf("%d answers", n), func() error {
		if have := l.requests(); have < n {
			return fmt.Errorf("%d", have)
		}
		return nil
	})
}

// dial connects to any server as the superuser, and resumes a session if it can. It returns nil if the load ends first.
func (l *load) dial(r *rand.Rand, o cluster.ConnectOptions) (c *cluster.Conn) {
	_ = wait.For(l.tb.Context(), "a connection", wait.Patience, func() (err error) {
		if l.stopped() {
			return nil
		}
		if c, err = cluster.Dial(l.addrs[r.IntN(len(l.addrs))], o); errors.Is(err, cluster.ErrExpired) {
			o.Session = cluster.Session{}
		}
		return err
	})
	if c != nil {
		c.Send(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte(zookeeper.Superuser)})
	}
	return c
}

// openSessions opens short sessions with ephemerals; half are closed, and half expire.
func (l *load) openSessions() {
	r := rand.New(rand.NewPCG(l.seed, 1<<32))
	for i := 0; !l.stopped(); i++ {
		c := l.dial(r, cluster.ConnectOptions{Timeout: time.Second})
		if c == nil {
			return
		}
		for k := range 4 {
			c.Send(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/e%d-%d", i, k), ACL: znode.OpenACL,
				Mode: znode.Ephemeral})
		}
		_, err := c.Do(wire.OpExists, &wire.ExistsRequest{Path: "/"})
		if l.count("session", err); i%2 == 0 {
			_ = c.Close() // a server may have been killed
		}
		c.Drop()
		l.pause(100 * time.Millisecond)
	}
}

// reconfigure adds an observer that does not exist, and removes it.
func (l *load) reconfigure() {
	r := rand.New(rand.NewPCG(l.seed, 1<<33))
	var c *cluster.Conn
	for i := 0; !l.stopped(); i++ {
		if c == nil || c.Err() != nil {
			if c = l.dial(r, cluster.ConnectOptions{Timeout: 8 * time.Second}); c == nil {
				return
			}
		}
		text := "server.9=127.0.0.1:9001:9002:observer;127.0.0.1:9003"
		q := &wire.ReconfigRequest{JoiningServers: &text, CurConfigID: -1}
		if i%2 == 1 {
			text = "9"
			q = &wire.ReconfigRequest{LeavingServers: &text, CurConfigID: -1}
		}
		_, err := c.Do(wire.OpReconfig, q)
		l.count("reconfig", err)
		l.pause(500 * time.Millisecond)
	}
	c.Drop()
}

// pause waits, but for no longer than the load lasts.
func (l *load) pause(d time.Duration) {
	select {
	case <-l.stop:
	case <-time.After(d):
	}
}

func (l *load) count(name string, err error) {
	var code znode.Error
	switch {
	case errors.Is(err, cluster.ErrNoReply):
		name += " unknown"
	case errors.As(err, &code):
		name += " fails"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[name]++
}

// checkKept fails the test unless the znodes have whatever was acknowledged.
func (l *load) checkKept(all []cluster.Znode) {
	l.tb.Helper()
	have := map[string]string{}
	for i := range all {
		have[all[i].Path] = string(all[i].Data)
	}
	missing := 0
	for path, data := range l.kept {
		if got, ok := have[path]; !ok || got != data {
			if missing++; missing == 1 {
				l.tb.Errorf("%s was acknowledged with %d bytes; found: %v, %d bytes", path, len(data), ok, len(got))
			}
		}
	}
	if missing > 0 || len(l.kept) == 0 {
		l.tb.Errorf("%d of %d acknowledged creates are missing", missing, len(l.kept))
	}
	l.tb.Logf("%d acknowledged creates are there", len(l.kept)-missing)
}

// asks notes the ACLs of a request.
func (l *load) asks(body wire.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.strict {
		return
	}
	note := func(path string, list []znode.ACL) { l.asked[path] = append(l.asked[path], list) }
	all := []wire.Request{body}
	if m, ok := body.(*wire.MultiRequest); ok {
		for i := range m.Ops {
			all = append(all, m.Ops[i].Request)
		}
	}
	for _, q := range all {
		switch q := q.(type) {
		case *wire.CreateRequest:
			note(q.Path, q.ACL)
		case *wire.CreateTTLRequest:
			note(q.Path, q.ACL)
		case *wire.SetACLRequest:
			note(q.Path, q.ACL)
		}
	}
}

// hasAsked reports whether a znode has an ACL that was asked for.
func (l *load) hasAsked(z *cluster.Znode) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(slices.Concat(l.asked[z.Path], l.asked[z.Path[:max(0, len(z.Path)-10)]]),
		func(list []znode.ACL) bool {
			return slices.Equal(list, z.ACL) || slices.ContainsFunc(list,
				func(a znode.ACL) bool { return a.ID.Scheme == "auth" })
		})
}
