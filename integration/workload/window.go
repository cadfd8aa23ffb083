package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	zkWorkers   = 6
	httpWorkers = 2
	lockWorkers = 2
)

// Window is some time in which clients work below a root of their own.
type Window struct {
	t    *testing.T
	e    *cluster.Ensemble
	root string
	rec  *recorder

	stop    chan struct{}
	done    sync.WaitGroup
	workers []*worker
	stream  *follower
}

// Findings are the results of a window.
type Findings struct {
	History    *check.History
	Answers    []Answer
	Violations []check.Violation // of the guarantees of docs/guarantees.md
	Linear     check.LinearStats
	Resumed    int // streams of changes
}

func (f *Findings) String() string {
	return fmt.Sprintf("%d operations, %d judged for linearizability in %d groups (%d undecided), "+
		"%d events, %d changes, stream resumed %d times, %d sessions, %d holds of the lock",
		len(f.History.Ops), f.Linear.Ops, f.Linear.Groups, f.Linear.Undecided, len(f.History.Events),
		len(f.History.Changes), f.Resumed, len(f.History.Sessions), len(f.History.Holds))
}

// Begin is the moment from which the history counts.
func (w *Window) Begin() time.Time { return w.rec.begin }

// Go runs another client, which must end when the window is Stopping.
func (w *Window) Go(run func()) { w.done.Go(run) }

// Stopping reports whether the clients are to end.
func (w *Window) Stopping() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// Pause waits, but not longer than the window lasts.
func (w *Window) Pause(d time.Duration) {
	select {
	case <-w.stop:
	case <-time.After(d):
	}
}

// Open starts the workers of a window.
func Open(t *testing.T, e *cluster.Ensemble, number int, seed uint64) *Window {
	t.Helper()
	w := &Window{t: t, e: e, root: fmt.Sprintf("/w%d", number), stop: make(chan struct{})}
	var created znode.Zxid
	for _, path := range []string{"", "/reg", "/seq", "/eph"} {
		created = w.create(w.root + path)
	}
	w.rec = newRecorder()
	rng := func(i int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(number*1000+i))) }
	for i := range zkWorkers {
		k := &worker{w: w, id: i + 1, rng: rng(i), seen: map[string]znode.Version{},
			timeout: time.Duration(4+i) * time.Second}
		w.workers = append(w.workers, k)
		w.done.Go(k.run)
	}
	for i := range httpWorkers {
		k := &httpWorker{w: w, id: 100 + i, rng: rng(100 + i), client: httpClient()}
		w.done.Go(k.run)
	}
	for i := range lockWorkers {
		w.done.Go((&lockWorker{w: w, id: 200 + i}).run)
	}
	w.stream = &follower{w: w, client: httpClient(), position: fmt.Sprintf("0x%x", int64(created))}
	ctx, cancel := context.WithCancel(context.Background())
	w.done.Go(func() { w.stream.run(ctx) })
	w.done.Go(func() { <-w.stop; cancel() })
	return w
}

// httpClient has its own connections, so that it can end them all.
func httpClient() *http.Client { return &http.Client{Transport: &http.Transport{}} }

// Close ends the work, once everything is healed, and judges it.
func (w *Window) Close() *Findings {
	w.t.Helper()
	close(w.stop)
	w.done.Wait()
	h := &w.rec.history
	conns := w.settle()
	defer func() {
		for _, c := range conns {
			if err := c.Close(); err != nil {
				c.Drop()
			}
		}
		w.remove()
	}()
	w.e.CheckReplicas()
	h.Changes = w.stream.truth(h)
	w.sessionEnds(h)
	for _, s := range w.rec.sessions {
		h.Sessions = append(h.Sessions, *s)
	}
	f := &Findings{History: h, Answers: w.rec.answers, Resumed: w.stream.resumed}
	f.Violations, f.Linear = check.Linearizable(h)
	for _, more := range []func(*check.History) []check.Violation{check.Sessions, check.Once,
		check.Watches, check.Ephemerals, check.Sequences, check.Tokens, streamEqualsTree} {
		f.Violations = append(f.Violations, more(h)...)
	}
	return f
}

// settle finds out which sessions live, waits until the stream is complete, and reads the tree
// while those sessions live. Their connections are returned.
func (w *Window) settle() map[znode.SessionID]*cluster.Conn {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for try := 0; ; try++ {
		conns := w.visit()
		marker := w.mark(try)
		w.awaitStream(ctx, marker)
		w.rec.history.Final = w.tree()
		if !slices.ContainsFunc(slices.Collect(mapValues(conns)), func(c *cluster.Conn) bool {
			_, err := c.Do(wire.OpExists, &wire.ExistsRequest{Path: "/"})
			return err != nil
		}) {
			return conns
		}
		for _, c := range conns {
			c.Drop()
		}
		if try > 10 {
			w.t.Fatal("sessions do not stay while the tree is read")
		}
	}
}

func mapValues(m map[znode.SessionID]*cluster.Conn) func(func(*cluster.Conn) bool) {
	return func(yield func(*cluster.Conn) bool) {
		for _, c := range m {
			if !yield(c) {
				return
			}
		}
	}
}

// visit resumes every session whose end is not known.
func (w *Window) visit() map[znode.SessionID]*cluster.Conn {
	w.t.Helper()
	conns := map[znode.SessionID]*cluster.Conn{}
	for _, k := range w.workers {
		for i, s := range k.left {
			if w.rec.end(s.ID) != check.Alive || conns[s.ID] != nil {
				continue
			}
			server := w.e.Servers()[i%len(w.e.Servers())]
			what := fmt.Sprintf("server %d says whether session %v lives", server.ID, s.ID)
			wait.Succeeds(w.t, what, func() error {
				c, err := cluster.Dial(server.Addr(), cluster.ConnectOptions{Session: s,
					Timeout: k.timeout})
				if errors.Is(err, cluster.ErrExpired) {
					w.rec.ended(s.ID, check.Expired, w.rec.since(time.Now()), 0)
					return nil
				}
				if err == nil {
					conns[s.ID] = c
				}
				return err
			})
		}
	}
	return conns
}

// mark makes a change that will appear in the stream.
func (w *Window) mark(try int) string {
	w.t.Helper()
	path := fmt.Sprintf("%s/end-%d", w.root, try)
	w.create(path)
	return path
}

// create creates a znode that only the window creates, and returns a zxid at which it is there. An election, which may
// happen on a busy machine without any fault, breaks connections: then it asks again.
func (w *Window) create(path string) (there znode.Zxid) {
	w.t.Helper()
	wait.Succeeds(w.t, "create "+path, func() error {
		c, err := cluster.Dial(w.e.Running()[0].Addr(), cluster.ConnectOptions{})
		if err != nil {
			return err
		}
		defer c.Drop()
		call := c.Send(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: znode.OpenACL})
		if _, err = call.Wait(); err == nil || errors.Is(err, znode.ErrNodeExists) {
			there = call.Reply.Zxid
			return c.Close()
		}
		return err
	})
	return there
}

// awaitStream waits until the stream has reached the marker.
func (w *Window) awaitStream(parent context.Context, marker string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(parent)
	var done sync.WaitGroup
	done.Go(func() { w.stream.run(ctx) })
	wait.Succeeds(w.t, "the stream of changes comes to its end", func() error {
		w.stream.mu.Lock()
		defer w.stream.mu.Unlock()
		if n := len(w.stream.changes); n > 0 && w.stream.changes[n-1].Path == marker {
			return nil
		}
		return errors.Join(fmt.Errorf("it has %d changes", len(w.stream.changes)), w.stream.failed)
	})
	cancel()
	done.Wait()
}

// tree is the tree below the root.
func (w *Window) tree() (all []check.Znode) {
	w.t.Helper()
	for _, z := range w.e.Running()[0].Dump(w.t) {
		if strings.HasPrefix(z.Path, w.root+"/") {
			all = append(all, check.Znode{Path: z.Path, Value: string(z.Data),
				Owner: z.Stat.EphemeralOwner})
		}
	}
	return all
}

// sessionEnds finds the transactions that ended sessions without an answer: that of the first
// of its ephemerals that no client has deleted. The others must have been deleted in the same.
func (w *Window) sessionEnds(h *check.History) {
	deleted := map[string]bool{}
	for i := range h.Ops {
		if h.Ops[i].Kind == check.Delete {
			deleted[h.Ops[i].Path] = true
		}
	}
	owner := map[string]znode.SessionID{}
	for _, c := range h.Changes {
		if c.Owner != 0 {
			owner[c.Path] = c.Owner
		}
		s := w.rec.sessions[owner[c.Path]]
		if c.Type == znode.EventDeleted && s != nil && !deleted[c.Path] &&
			s.Ended != check.Alive && s.EndZxid == 0 {
			s.EndZxid = c.Zxid
		}
	}
}

// streamEqualsTree checks that a client that follows all changes ends with the tree.
func streamEqualsTree(h *check.History) (all []check.Violation) {
	followed := map[string]bool{}
	for _, c := range h.Changes {
		if (c.Type == znode.EventCreated) == followed[c.Path] {
			all = append(all, check.Violation{Guarantee: "Resuming",
				What: fmt.Sprintf("the stream tells %v of %s at %v, which it has told to exist: %v",
					c.Type, c.Path, c.Zxid, followed[c.Path])})
		}
		followed[c.Path] = c.Type != znode.EventDeleted
	}
	for _, z := range h.Final {
		if isLeaf := strings.Count(z.Path, "/") > 2; isLeaf && !followed[z.Path] {
			all = append(all, check.Violation{Guarantee: "Resuming",
				What: "the stream does not know of " + z.Path})
		}
		delete(followed, z.Path)
	}
	for path, there := range followed {
		if there {
			all = append(all, check.Violation{Guarantee: "Resuming",
				What: "the stream tells of " + path + ", which is not there"})
		}
	}
	return all[:min(len(all), 10)]
}

// remove deletes the window's znodes, so that windows do not grow. An abandoned request may
// still add one meanwhile.
func (w *Window) remove() {
	wait.Succeeds(w.t, "the window's znodes are deleted", func() error {
		c, err := cluster.Dial(w.e.Running()[0].Addr(), cluster.ConnectOptions{})
		if err != nil {
			return err
		}
		defer c.Drop()
		for _, z := range slices.Backward(w.tree()) {
			// The session's end may have deleted an ephemeral by now.
			_ = c.Send(wire.OpDelete, &wire.DeleteRequest{Path: z.Path, Version: znode.AnyVersion})
		}
		_, err = c.Do(wire.OpDelete, &wire.DeleteRequest{Path: w.root, Version: znode.AnyVersion})
		if errors.Is(err, znode.ErrNoNode) {
			err = nil
		}
		return err
	})
}
