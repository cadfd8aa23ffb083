//go:build soak

package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/integration/workload"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	edgeServers     = 3
	edgeMemory      = 120 << 20
	edgeDescriptors = 600
	// visitors are more than so few descriptors, of which 413 at each server are for them.
	visitors     = 2400
	visitTimeout = 10 * time.Second
	fillers      = 6
	fillAtOnce   = 30
	fillPause    = 200 * time.Millisecond
	largeData    = 100_000
	// mostAway is for how long a server may not be ready: an election on a busy machine.
	mostAway = 7 * time.Second
	// dialAtMost is how long a client waits for a session, httpAtMost for an answer.
	dialAtMost, httpAtMost = 700 * time.Millisecond, 2 * time.Second
)

// TestEdge runs the soak's clients at servers that have neither memory nor descriptors to spare: the tree is
// filled until writes are refused, repeatedly, while more clients connect and leave than may be connected. No
// server may die, be lost to its peers, or lose acknowledged writes.
func TestEdge(t *testing.T) {
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return
	}
	duration, seed := settings(t)
	t.Logf("for %v", duration)
	var groups []*cluster.MemoryGroup
	for range edgeServers {
		groups = append(groups, cluster.NewMemoryGroup(t, edgeMemory))
	}
	e := cluster.Start(t, edgeServers, cluster.Options{
		Config: map[string]string{"snapCount": "1000"},
		Wrap: func(id int) []string {
			limit := fmt.Sprintf(`ulimit -n %d && exec "$@"`, edgeDescriptors)
			return append(groups[id-1].Wrap(), "sh", "-c", limit, "sh")
		},
	})
	n := &nemesis{t: t, e: e, rng: rand.New(rand.NewPCG(seed, 0))}
	r := &report{begin: time.Now(), seed: seed, servers: edgeServers, faults: map[string]int{}}
	defer r.write(t)
	var visits visits
	var hoard []*filler
	for i := range fillers {
		hoard = append(hoard, &filler{t: t, e: e, id: i, unsure: map[string]bool{},
			rng: rand.New(rand.NewPCG(seed, uint64(1_000_000+i)))})
	}
	var worked, away time.Duration
	var refused, created, refusedOps int
	for number := 0; worked < duration && !t.Failed(); number++ {
		w := workload.Open(t, e, number, seed)
		for i := range visitors {
			rng := rand.New(rand.NewPCG(seed, uint64(2_000_000+number*visitors+i)))
			w.Go(func() { visits.run(e, w, rng) })
		}
		for _, f := range hoard {
			w.Go(func() { f.run(w) })
		}
		away = max(away, watchReady(e, windowLength/2))
		n.transfer() // so that servers connect to each other again
		away = max(away, watchReady(e, windowLength/2))
		wait.Within(t, "all servers are ready and name one leader, under load", mostAway,
			func() error { return ready(e) })
		worked += time.Since(w.Begin())
		f := n.judge(w, r, number, seed)
		e.WaitServing() // an error if one has ended
		for _, op := range f.History.Ops {
			if op.Code == znode.ErrSystem {
				refusedOps++
			}
		}
	}
	if away > mostAway {
		t.Errorf("for %v not all servers were ready", away)
	}
	checkLarge(t, e, hoard)
	r.log(t)
	for _, f := range hoard {
		refused, created = refused+f.refused, created+f.created
	}
	t.Logf("load for %v; the longest time that a server was not ready: %v", worked.Round(time.Second),
		away.Round(time.Millisecond))
	t.Logf("large znodes: %d created, %d refused; of the checked operations, %d were refused", created, refused,
		refusedOps)
	t.Logf("visits: %d, refused: %d", visits.served.Load(), visits.refused.Load())
	for i, s := range e.Servers() {
		m, err := s.Metrics()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("server %d: resident at most %s; its group had %s bytes; refused %s writes and %s connections", s.ID,
			highWater(t, s), groups[i].Highest(), m["refused_writes_total"], m["descriptors_refused_total"])
		if m["refused_writes_total"] == "0" || m["descriptors_refused_total"] == "0" {
			t.Errorf("server %d was not at both limits, or did not notice", s.ID)
		}
	}
}

// watchReady asks once a second whether all servers are ready, and returns the longest time that they were not.
func watchReady(e *cluster.Ensemble, d time.Duration) (away time.Duration) {
	begin := time.Now()
	last := begin // that all were
	for time.Since(begin) < d {
		err := ready(e)
		if err != nil {
			away = max(away, time.Since(last))
		} else {
			last = time.Now()
		}
		<-time.After(time.Second)
	}
	return away
}

// ready is an error unless all servers are ready and name the same leader.
func ready(e *cluster.Ensemble) error {
	client := &http.Client{Timeout: httpAtMost, Transport: &http.Transport{DisableKeepAlives: true}}
	leaders := map[int]bool{}
	for _, s := range e.Servers() {
		if !s.Running() {
			return fmt.Errorf("server %d has ended", s.ID)
		}
		r, err := client.Get("http://" + s.HTTPAddr() + "/readyz")
		if err != nil {
			return err
		}
		text, err := io.ReadAll(r.Body)
		var says struct{ Leader int }
		err = errors.Join(err, r.Body.Close(), json.Unmarshal(text, &says))
		if err != nil || r.StatusCode != http.StatusOK {
			return fmt.Errorf("server %d: %s: %s (%w)", s.ID, r.Status, text, err)
		}
		leaders[says.Leader] = true
	}
	if len(leaders) != 1 {
		return fmt.Errorf("the servers name the leaders %v", leaders)
	}
	return nil
}

// visits are those of clients that come, read something large, stay for some seconds, and come again with their
// sessions.
type visits struct{ served, refused atomic.Int64 }

func (v *visits) run(e *cluster.Ensemble, w *workload.Window, rng *rand.Rand) {
	var session cluster.Session
	for !w.Stopping() {
		s := e.Servers()[rng.IntN(edgeServers)]
		c, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{Session: session, Timeout: visitTimeout,
			HandshakeTimeout: dialAtMost})
		if err != nil {
			if errors.Is(err, cluster.ErrExpired) {
				session = cluster.Session{}
			} else {
				v.refused.Add(1)
			}
			w.Pause(time.Duration(1000+rng.IntN(2000)) * time.Millisecond)
			continue
		}
		v.served.Add(1)
		v.read(c, rng)
		w.Pause(time.Duration(2000+rng.IntN(4000)) * time.Millisecond)
		session = c.State()
		c.Drop()
	}
}

func (v *visits) read(c *cluster.Conn, rng *rand.Rand) {
	defer time.AfterFunc(visitTimeout, c.Drop).Stop()
	r, err := c.Do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"})
	if err != nil {
		return
	}
	names := r.(*wire.GetChildrenResponse).Children
	_, _ = c.Do(wire.OpGetData, &wire.GetDataRequest{Path: "/" + names[rng.IntN(len(names))]}) // it may be deleted
}

// filler creates large znodes until there is no room, and deletes some of them. It works in all windows.
type filler struct {
	t   *testing.T
	e   *cluster.Ensemble
	id  int
	rng *rand.Rand

	conn             *cluster.Conn
	next             int
	have             []string        // acknowledged
	unsure           map[string]bool // no answer, so that they may be there or not
	created, refused int
}

func (f *filler) run(w *workload.Window) {
	for full := 0; !w.Stopping(); w.Pause(fillPause) {
		before := f.created
		if f.create(); f.created > before {
			full = 0
		} else if full++; full == 5 {
			full = 0
			f.remove(len(f.have) * 2 / 3)
		}
	}
	// Room for the znodes that judging adds; descriptors are free again soon.
	least := len(f.have) * 2 / 3
	if err := wait.For(context.Background(), "room", wait.Patience, func() error {
		if f.remove(least); len(f.have) > least {
			return errors.New("no connection")
		}
		return nil
	}); err != nil {
		f.t.Errorf("deleting large znodes: %v", err)
	}
	if f.conn != nil {
		f.conn.Drop()
		f.conn = nil
	}
}

func (f *filler) create() {
	var paths []string
	for range fillAtOnce {
		f.next++
		paths = append(paths, fmt.Sprintf("/large-%d-%d", f.id, f.next))
	}
	f.ask(paths, wire.OpCreate, func(path string) wire.Request {
		return &wire.CreateRequest{Path: path, Data: large(path), ACL: znode.OpenACL}
	}, func(path string, err error) {
		switch {
		case err == nil:
			f.have = append(f.have, path)
			f.created++
		case errors.Is(err, cluster.ErrNoReply):
			f.unsure[path] = true
		case errors.Is(err, znode.ErrSystem):
			f.refused++
		default:
			f.t.Errorf("create %s: %v", path, err)
		}
	})
}

// remove deletes the oldest znodes until only some are left, if there is a connection.
func (f *filler) remove(least int) {
	f.ask(f.have[:len(f.have)-least], wire.OpDelete, func(path string) wire.Request {
		return &wire.DeleteRequest{Path: path, Version: znode.AnyVersion}
	}, func(path string, err error) {
		f.have = f.have[1:]
		switch {
		case errors.Is(err, cluster.ErrNoReply):
			f.unsure[path] = true
		case err != nil:
			f.t.Errorf("delete %s, which was acknowledged: %v", path, err)
		}
	})
}

// ask sends requests about znodes at once and returns the outcome of each. It does nothing without a session.
func (f *filler) ask(paths []string, op wire.OpCode, request func(path string) wire.Request,
	answered func(path string, err error)) {
	if f.conn == nil {
		s := f.e.Servers()[f.rng.IntN(edgeServers)]
		c, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{HandshakeTimeout: dialAtMost})
		if err != nil {
			return
		}
		f.conn = c
	}
	defer time.AfterFunc(wait.Patience, f.conn.Drop).Stop()
	calls := make([]*cluster.Call, len(paths))
	for i, path := range paths {
		calls[i] = f.conn.Send(op, request(path))
	}
	for i, call := range calls {
		_, err := call.Wait()
		answered(paths[i], err)
	}
	if f.conn.Err() != nil {
		f.conn = nil
	}
}

// large is the data of a large znode, which tells whose it is.
func large(path string) []byte {
	return bytes.Repeat([]byte(path+" "), largeData/len(path))[:largeData]
}

// checkLarge compares the large znodes that are there with those that were acknowledged. Replicas are equal.
func checkLarge(t *testing.T, e *cluster.Ensemble, all []*filler) {
	t.Helper()
	there := map[string][]byte{}
	for _, z := range e.Server(1).Dump(t) {
		if strings.HasPrefix(z.Path, "/large-") {
			there[z.Path] = z.Data
		}
	}
	for _, f := range all {
		for _, path := range f.have {
			if !bytes.Equal(there[path], large(path)) {
				t.Errorf("%s was acknowledged, and is not there as it was written", path)
			}
			delete(there, path)
		}
		for path := range f.unsure {
			delete(there, path)
		}
	}
	for path := range there {
		t.Errorf("%s was refused or deleted, and is there", path)
	}
}

// highWater is the most memory that a server's process had resident.
func highWater(t *testing.T, s *cluster.Server) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}
