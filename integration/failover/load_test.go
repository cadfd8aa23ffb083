package failover_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		os.Exit(child(dir))
	}
	os.Exit(cluster.Main(m))
}

const (
	// sessionTimeout is longer than any failover should take, also on a busy
	// machine, so that a session that expires is a fault.
	// Writers send no pings: one that waits for an answer for longer loses its session.
	sessionTimeout = 60 * time.Second
	// handshakeTimeout is how long a writer tries one server before another.
	handshakeTimeout = 300 * time.Millisecond
	// generousGap is the one bound on the time without an answer, for a machine that is very
	// busy. The measured time is in the log of the test.
	generousGap = 30 * time.Second
)

// notice is how long a server that has lost the others may keep serving: half of the shortest session timeout of the
// kit's tick, and a margin for a busy machine.
const notice = 5 * time.Second

// start runs n servers that permit sessionTimeout.
func start(t *testing.T, n int, o cluster.Options) *cluster.Ensemble {
	t.Helper()
	config := map[string]string{"maxSessionTimeout": fmt.Sprint(sessionTimeout.Milliseconds())}
	maps.Copy(config, o.Config)
	o.Config = config
	return cluster.Start(t, n, o)
}

// load is a set of clients that write to an ensemble, and what they know of it.
type load struct {
	t       *testing.T
	e       *cluster.Ensemble
	root    string
	writers []*writer
	// pace is how long a writer waits between two writes, so that long tests do
	// not end with trees that take long to compare.
	pace time.Duration
	// report gets each violation; nil: the test fails.
	report func(format string, args ...any)
	stop   chan struct{}
	done   sync.WaitGroup
}

// wrong reports a violation.
func (l *load) wrong(format string, args ...any) {
	l.t.Helper()
	if l.report != nil {
		l.report(format, args...)
		return
	}
	l.t.Errorf(format, args...)
}

// writer is one client. It creates sequential znodes whose names hold a number
// that is never used twice, and sets a znode of its own as often. A write
// without a reply is counted as unknown and never repeated.
type writer struct {
	load  *load
	name  string
	home  *cluster.Server
	depth int // writes under way at a time

	mu      sync.Mutex // protects the fields below
	acked   map[string]string
	unknown map[string]bool
	sets    int // acknowledged
	maybe   int // sets of unknown outcome
	version znode.Version
	answers []time.Time
	losses  []error // how connections ended
}

// startLoad runs a single and a pipelining writer on every server.
func startLoad(t *testing.T, e *cluster.Ensemble, root string) *load {
	t.Helper()
	return startPacedLoad(t, e, root, 0)
}

func startPacedLoad(t *testing.T, e *cluster.Ensemble, root string, pace time.Duration) *load {
	t.Helper()
	l := &load{t: t, e: e, root: root, pace: pace, stop: make(chan struct{})}
	paths := []string{root}
	for _, s := range e.Running() {
		for _, depth := range []int{1, 32} {
			w := &writer{load: l, name: fmt.Sprintf("s%d-d%d", s.ID, depth), home: s, depth: depth,
				acked: map[string]string{}, unknown: map[string]bool{}}
			paths = append(paths, root+"/"+w.name)
			l.writers = append(l.writers, w)
		}
	}
	createAll(t, e, paths)
	for _, w := range l.writers {
		l.done.Go(w.run)
	}
	t.Cleanup(func() { l.end() })
	return l
}

// createAll creates znodes, over as many connections as it takes.
func createAll(t *testing.T, e *cluster.Ensemble, paths []string) {
	t.Helper()
	wait.Succeeds(t, "the writers' znodes are created", func() error {
		c, err := cluster.Dial(e.Running()[0].Addr(), cluster.ConnectOptions{})
		if err != nil {
			return err
		}
		defer c.Drop()
		for _, path := range paths {
			_, err := c.Do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: znode.OpenACL})
			if err != nil && !errors.Is(err, znode.ErrNodeExists) {
				return fmt.Errorf("create %s: %w", path, err)
			}
		}
		return c.Close()
	})
}

// end stops the writers and waits for them.
func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.done.Wait()
}

func (l *load) stopping() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// wait is the pause between two writes.
func (l *load) wait() {
	if l.pace == 0 {
		return
	}
	select {
	case <-l.stop:
	case <-time.After(l.pace):
	}
}

// waitProgress waits until every writer has n more answers.
func (l *load) waitProgress(n int) {
	l.t.Helper()
	want := map[*writer]int{}
	for _, w := range l.writers {
		want[w] = w.answered() + n
	}
	wait.Succeeds(l.t, fmt.Sprintf("%d more answers for every writer", n),
		func() error {
			for _, w := range l.writers {
				if have := w.answered(); have < want[w] {
					return fmt.Errorf("writer %s has %d of %d; its connections ended with %v",
						w.name, have, want[w], w.endings())
				}
			}
			return nil
		})
}

func (w *writer) answered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.answers)
}

func (w *writer) endings() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.losses)
}

// run writes until the load ends, over as many connections as it takes.
func (w *writer) run() {
	var session cluster.Session
	next := 0
	for try := 0; !w.load.stopping(); try++ {
		servers := w.load.e.Servers()
		s := servers[(w.home.ID-1+try)%len(servers)]
		c, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{
			Timeout: sessionTimeout, Session: session, FirstXid: wire.Xid(next + 1),
			HandshakeTimeout: handshakeTimeout,
		})
		if errors.Is(err, cluster.ErrExpired) {
			w.load.t.Errorf("writer %s: server %d: %v", w.name, s.ID, err)
			return
		}
		if err != nil {
			if try%len(servers) == len(servers)-1 {
				select { // no server is up; do not spin
				case <-w.load.stop:
				case <-time.After(5 * time.Millisecond):
				}
			}
			continue
		}
		next = w.write(c, next)
		session = c.State()
		if w.load.stopping() {
			if err := c.Close(); err != nil && !cluster.IsUnknown(err) {
				w.load.t.Errorf("writer %s: closing: %v", w.name, err)
			}
			return
		}
		c.Drop()
		w.mu.Lock()
		w.losses = append(w.losses, fmt.Errorf("server %d: %w", s.ID, c.Err()))
		w.mu.Unlock()
	}
}

// write keeps depth writes under way until the connection or the load ends, and
// returns the next unused number.
func (w *writer) write(c *cluster.Conn, next int) int {
	type pending struct {
		name string // "" for a set
		call *cluster.Call
	}
	var under []pending
	ok := true
	for {
		for ok && len(under) < w.depth && !w.load.stopping() {
			p := pending{}
			if next%2 == 0 {
				p.name = fmt.Sprintf("%s:%d-", w.name, next)
				p.call = c.Send(wire.OpCreate, &wire.CreateRequest{
					Path: w.load.root + "/" + p.name, Data: []byte(p.name), ACL: znode.OpenACL,
					Mode: znode.PersistentSequential,
				})
			} else {
				p.call = c.Send(wire.OpSetData, &wire.SetDataRequest{
					Path: w.load.root + "/" + w.name, Data: []byte(fmt.Sprint(next)),
					Version: znode.AnyVersion,
				})
			}
			next++
			under = append(under, p)
			w.load.wait()
		}
		if len(under) == 0 {
			return next
		}
		ok = w.answer(under[0].name, under[0].call)
		under = under[1:]
	}
}

// answer records the outcome of a write. It returns false when the connection has ended.
func (w *writer) answer(name string, call *cluster.Call) bool {
	body, err := call.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case cluster.IsUnknown(err) && name != "":
		w.unknown[name] = true
		return false
	case cluster.IsUnknown(err):
		w.maybe++
		return false
	case err != nil:
		w.load.t.Errorf("writer %s: %s %s: %v", w.name, call.Op, name, err)
	case name != "":
		w.acked[name] = strings.TrimPrefix(body.(*wire.CreateResponse).Path, w.load.root+"/")
	default:
		w.sets++
		version := body.(*wire.SetDataResponse).Stat.Version
		if version <= w.version || w.maybe == 0 && version != w.version+1 {
			w.load.t.Errorf("writer %s: version %d after %d", w.name, version, w.version)
		}
		w.version = version
	}
	w.answers = append(w.answers, call.AnsweredAt)
	return true
}
