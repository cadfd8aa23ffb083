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
	// generousGap is the one bound on how long nobody got an answer, for a machine
	// that is very busy. What was measured is in the log of the test.
	generousGap = 30 * time.Second
)

// notice is how long a server that has lost the others may go on as if
// nothing had happened: half of the shortest session timeout of the kit's
// tick, and something for a busy machine.
const notice = 5 * time.Second

// start runs n servers that permit sessionTimeout.
func start(t *testing.T, n int, o cluster.Options) *cluster.Ensemble {
	t.Helper()
	config := map[string]string{"maxSessionTimeout": fmt.Sprint(sessionTimeout.Milliseconds())}
	maps.Copy(config, o.Config)
	o.Config = config
	return cluster.Start(t, n, o)
}

// load is clients that write to an ensemble, and what they know of it.
type load struct {
	t       *testing.T
	e       *cluster.Ensemble
	root    string
	writers []*writer
	// pace is how long a writer waits between two writes, so that long tests do
	// not end with trees that take long to compare.
	pace time.Duration
	// report is told what is wrong; nil: the test fails.
	report func(format string, args ...any)
	stop   chan struct{}
	done   sync.WaitGroup
}

// wrong says that a promise is broken.
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
				select { // nobody is there; do not spin
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

// answer notes what came of a write. It returns false when the connection has
// ended.
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

// check ends the load and compares what the writers were told with what every
// running server holds: nothing acknowledged is missing, nothing is there
// twice, nothing is there that nobody wrote.
func (l *load) check() {
	l.t.Helper()
	l.end()
	acked, unknown := 0, 0
	for _, s := range l.e.Running() {
		acked, unknown = l.checkServer(s)
	}
	if acked == 0 {
		l.t.Error("no write was acknowledged, so nothing was shown")
	}
	l.t.Logf("%d creates acknowledged, %d of unknown outcome", acked, unknown)
}

// holds is what a server holds of a load.
type holds struct {
	names    []string          // the root's children
	versions map[*writer]int   // of the writers' own znodes
	missing  map[*writer]error // why one has none
}

// read asks a server, behind a sync. The connection may be lost when the ensemble still
// changes by itself, as a busy machine's does; then it is asked again.
func (l *load) read(s *cluster.Server) (h holds, err error) {
	l.t.Helper()
	wait.Succeeds(l.t, fmt.Sprintf("server %d tells what it holds", s.ID),
		func() error {
			h, err = l.tryRead(s)
			if cluster.IsUnknown(err) || errors.Is(err, errNoServer) {
				return err
			}
			return nil
		})
	return h, err
}

// errNoServer says that there is nobody to ask.
var errNoServer = errors.New("no connection")

func (l *load) tryRead(s *cluster.Server) (h holds, err error) {
	h = holds{versions: map[*writer]int{}, missing: map[*writer]error{}}
	c, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{})
	if err != nil {
		return h, fmt.Errorf("%w: %w", errNoServer, err)
	}
	defer c.Drop()
	if _, err := c.Do(wire.OpSync, &wire.SyncRequest{Path: "/"}); err != nil {
		return h, fmt.Errorf("sync: %w", err)
	}
	list, err := c.Do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: l.root})
	if err != nil {
		return h, fmt.Errorf("listing %s: %w", l.root, err)
	}
	h.names = list.(*wire.GetChildrenResponse).Children
	for _, w := range l.writers {
		got, err := c.Do(wire.OpExists, &wire.ExistsRequest{Path: l.root + "/" + w.name})
		if cluster.IsUnknown(err) {
			return h, err
		}
		if h.missing[w] = err; err == nil {
			h.versions[w] = int(got.(*wire.ExistsResponse).Stat.Version)
		}
	}
	return h, c.Close()
}

func (l *load) checkServer(s *cluster.Server) (acked, unknown int) {
	l.t.Helper()
	h, err := l.read(s)
	if err != nil {
		l.wrong("server %d: %v", s.ID, err)
		return 0, 0
	}
	there := map[string]string{} // the unique part -> the whole name
	for _, name := range h.names {
		if !strings.Contains(name, ":") {
			continue // a writer's own znode
		}
		unique := name[:len(name)-10]
		if other, twice := there[unique]; twice {
			l.wrong("server %d: written twice: %s and %s", s.ID, other, name)
		}
		there[unique] = name
	}
	for _, w := range l.writers {
		w.mu.Lock()
		acked, unknown = acked+len(w.acked), unknown+len(w.unknown)
		for unique, name := range w.acked {
			if there[unique] != name {
				l.wrong("server %d: %s was acknowledged and is %q", s.ID, name, there[unique])
			}
			delete(there, unique)
		}
		for unique := range w.unknown {
			delete(there, unique)
		}
		w.checkSets(s, h.versions[w], h.missing[w])
		w.mu.Unlock()
	}
	for _, name := range there {
		l.wrong("server %d: nobody wrote %s", s.ID, name)
	}
	return acked, unknown
}

// checkSets is called with w.mu held.
func (w *writer) checkSets(s *cluster.Server, version int, err error) {
	if err != nil {
		w.load.wrong("server %d: %s: %v", s.ID, w.name, err)
		return
	}
	if version < w.sets || version > w.sets+w.maybe {
		w.load.wrong("server %d: %s was set %d times, acknowledged %d, unknown %d",
			s.ID, w.name, version, w.sets, w.maybe)
	}
}

// checkKept fails the test if a writer whose home is not among the dead ever
// lost its connection.
func (l *load) checkKept(dead ...*cluster.Server) {
	l.t.Helper()
	for _, w := range l.writers {
		if losses := w.endings(); !slices.Contains(dead, w.home) && len(losses) != 0 {
			l.t.Errorf("writer %s lost its connection to a living server: %v", w.name, losses)
		}
	}
}

// gap is the longest time that ended after a moment in which no writer at all
// got an answer, and the longest of any single writer that kept its connection.
func (l *load) gap(after time.Time) (all, single time.Duration) {
	var merged []time.Time
	for _, w := range l.writers {
		w.mu.Lock()
		merged = append(merged, w.answers...)
		if len(w.losses) == 0 {
			single = max(single, longest(w.answers, after))
		}
		w.mu.Unlock()
	}
	slices.SortFunc(merged, time.Time.Compare)
	return longest(merged, after), single
}

func longest(answers []time.Time, after time.Time) (d time.Duration) {
	for i := 1; i < len(answers); i++ {
		if answers[i].After(after) {
			d = max(d, answers[i].Sub(answers[i-1]))
		}
	}
	return d
}
