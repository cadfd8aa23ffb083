package failover_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// check ends the load and compares the writers' answers with the state of every running server:
// nothing acknowledged is missing, nothing is there twice, nothing is there that was not
// written.
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

// holds is a server's part of the data of a load.
type holds struct {
	names    []string          // the root's children
	versions map[*writer]int   // of the writers' own znodes
	missing  map[*writer]error // why one has none
}

// read reads from a server, after a sync. The connection may break while the ensemble still changes by itself, as on a
// busy machine; then it is repeated.
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

// errNoServer reports that there is no server to ask.
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

// checkKept fails the test if a writer of a server that did not die ever lost its connection.
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
