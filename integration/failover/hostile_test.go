//go:build privileged

package failover_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// What the hostile clients do, and the bounds of the servers they do it to.
const (
	hostileConnections = 4000 // maxCnxns
	hostileDials       = 5000
	hostileFrames      = 400 // connections that send most of the largest frame
	hostileReaders     = 30  // that ask for 90 MB each and do not read
	hostileOutbox      = 1 << 20
	hostilePartial     = 64 << 20 // largeRequestMaxBytes
	hostileWatchers    = 4
	watchesOfEach      = 250_000
	stormSessions      = 3000
	stormAtOnce        = 50
	// slack is for what every server needs, and for memory that the garbage collector
	// has not yet given back: it lets the heap double.
	slack = 192 << 20
)

// assault is one kind of hostile clients. It returns when it is at its height; its
// connections stay until the release.
type assault struct {
	name string
	do   func(t *testing.T, s *cluster.Server) (release func())
	// most is by how much the server may grow, in bytes.
	most int64
}

func assaults() []assault {
	return []assault{
		{"a flood of connections", floodConnections, hostileConnections * 64 << 10},
		{"huge frames, sent in part", partialFrames, 2 * hostilePartial},
		{"slow readers", slowReaders, hostileReaders * 4 * hostileOutbox},
		{"a million watches", millionWatches, hostileWatchers * watchesOfEach * 512},
		{"a storm of sessions", sessionStorm, stormSessions * 64 << 10},
	}
}

// TestHostile_BoundsHold lets hostile clients loose on the leader: it must not grow
// beyond what its limits allow, and the other clients, at all servers, must keep
// their connections and be answered. How their latency changes is logged, and
// bounded generously, as the hostile clients work on the same machine.
func TestHostile_BoundsHold(t *testing.T) {
	e := start(t, 3, cluster.Options{Config: map[string]string{
		"maxCnxns": fmt.Sprint(hostileConnections), "limits.outboxBytes": fmt.Sprint(hostileOutbox)}})
	leader := e.Leader()
	c := leader.Connect(t, cluster.ConnectOptions{})
	mustCreate(t, c, "/large", bytes.Repeat([]byte("x"), 900_000))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, a := range assaults() {
		t.Run(a.name, func(t *testing.T) {
			calm := measure(t, e, func() func() { return func() {} })
			before := resident(t, leader)
			var grown int64
			during := measure(t, e, func() func() {
				release := a.do(t, leader)
				grown = resident(t, leader) - before
				return release
			})
			t.Logf("memory: %d MiB and %d MiB more; latency, median and 99 %%: %v, %v before, %v, %v during",
				before>>20, grown>>20, middle(calm), late(calm), middle(during), late(during))
			if grown > a.most+slack {
				t.Errorf("the server has grown by %d MiB; its limits allow %d MiB", grown>>20,
					(a.most+slack)>>20)
			}
			if bound := 50*middle(calm) + time.Second; middle(during) > bound {
				t.Errorf("the others' median latency is %v, and was %v", middle(during), middle(calm))
			}
		})
	}
	e.WaitServing()
	wait.Succeeds(t, "no session is left", func() error {
		m, err := leader.Metrics()
		if err == nil && m["global_sessions"] != "0" {
			err = fmt.Errorf("%s sessions", m["global_sessions"])
		}
		return err
	})
	e.CheckReplicas()
}

// measure lets a client at each server write while something is done, and a little
// longer, and returns how long its writes took.
func measure(t *testing.T, e *cluster.Ensemble, do func() (release func())) (took []time.Duration) {
	t.Helper()
	const least = 100 // writes of each
	stop := make(chan struct{})
	var mu sync.Mutex // protects took
	var done sync.WaitGroup
	counts := make([]int, len(e.Servers()))
	for i, s := range e.Servers() {
		c := s.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
		path := fmt.Sprintf("/probe-%d", s.ID)
		if _, err := c.Do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: znode.OpenACL}); err != nil &&
			!errors.Is(err, znode.ErrNodeExists) {
			t.Fatal(err)
		}
		done.Go(func() {
			for {
				begin := time.Now()
				_, err := c.Do(wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1})
				if err != nil {
					t.Errorf("a client of server %d beside the hostile ones: %v", s.ID, err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(begin))
				counts[i]++
				mu.Unlock()
				select {
				case <-stop:
					if err := c.Close(); err != nil {
						t.Error(err)
					}
					return
				case <-time.After(2 * time.Millisecond):
				}
			}
		})
	}
	release := do()
	wait.Succeeds(t, "the others are answered", func() error {
		mu.Lock()
		defer mu.Unlock()
		if n := slices.Min(counts); n < least && !t.Failed() {
			return fmt.Errorf("%d answers", n)
		}
		return nil
	})
	close(stop)
	done.Wait()
	release()
	return took
}

func middle(all []time.Duration) time.Duration { return nth(all, 0.5) }
func late(all []time.Duration) time.Duration   { return nth(all, 0.99) }

func nth(all []time.Duration, part float64) time.Duration {
	slices.Sort(all)
	return all[int(part*float64(len(all)))].Round(10 * time.Microsecond)
}

// resident returns the memory of a server's process.
func resident(t *testing.T, s *cluster.Server) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("no VmRSS in %s", text)
	return 0
}

// crowd is connections that end together.
type crowd struct {
	mu    sync.Mutex // protects the field below
	conns []net.Conn
}

func (c *crowd) add(nc net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, nc)
}

func (c *crowd) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range c.conns {
		nc.Close()
	}
}

// floodConnections opens more connections than are allowed, and sends nothing.
func floodConnections(t *testing.T, s *cluster.Server) func() {
	c := &crowd{}
	for range hostileDials {
		nc, err := net.DialTimeout("tcp", s.Addr(), 10*time.Second)
		if err != nil {
			continue // the queue of the port is full
		}
		c.add(nc)
	}
	if len(c.conns) < hostileConnections/2 {
		t.Errorf("only %d connections", len(c.conns))
	}
	return c.release
}

// partialFrames sends all but the end of frames that are as large as may be.
func partialFrames(t *testing.T, s *cluster.Server) func() {
	c := &crowd{}
	frame := make([]byte, wire.DefaultMaxFrame-1000)
	frame[1], frame[2], frame[3] = 0x0f, 0xff, 0xff
	for range hostileFrames {
		nc, _ := rawSession(t, s, 10*time.Second)
		c.add(nc)
		rawWrite(t, nc, frame)
	}
	return c.release
}

// slowReaders ask for much and do not read it.
func slowReaders(t *testing.T, s *cluster.Server) func() {
	c := &crowd{}
	var b []byte
	for i := range 100 {
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(i + 1), Type: wire.OpGetData},
			&wire.GetDataRequest{Path: "/large"})
	}
	for range hostileReaders {
		nc, _ := rawSession(t, s, 10*time.Second)
		c.add(nc)
		rawWrite(t, nc, b)
	}
	return c.release
}

// millionWatches watches as many paths as connections may.
func millionWatches(t *testing.T, s *cluster.Server) func() {
	c := &crowd{}
	var done sync.WaitGroup
	for i := range hostileWatchers {
		nc, _ := rawSession(t, s, 10*time.Second)
		c.add(nc)
		done.Go(func() { watchPaths(t, nc, i) })
	}
	done.Wait()
	m, err := s.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s watches", m["watch_count"])
	if n, err := strconv.Atoi(m["watch_count"]); err != nil || n < hostileWatchers*watchesOfEach {
		t.Errorf("%q watches, want %d: nothing was shown", m["watch_count"], hostileWatchers*watchesOfEach)
	}
	return c.release
}

// watchPaths sets watches on missing paths, in batches whose replies fit into the small buffer of a raw session.
func watchPaths(t *testing.T, nc net.Conn, watcher int) {
	const batch, replyBytes = 100, 20 // a length and a header: there is no znode
	replies := make([]byte, batch*replyBytes)
	for n := 0; n < watchesOfEach; n += batch {
		var b []byte
		for i := range batch {
			b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(n + i + 1), Type: wire.OpExists},
				&wire.ExistsRequest{Path: fmt.Sprintf("/none-%d-%d", watcher, n+i), Watch: true})
		}
		if _, err := nc.Write(b); err != nil {
			t.Errorf("watching: %v", err)
			return
		}
		if _, err := io.ReadFull(nc, replies); err != nil {
			t.Errorf("watching: %v", err)
			return
		}
	}
}

// sessionStorm opens sessions and leaves without a word.
func sessionStorm(t *testing.T, s *cluster.Server) func() {
	var done sync.WaitGroup
	for range stormAtOnce {
		done.Go(func() {
			for range stormSessions / stormAtOnce {
				c, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{Timeout: 2 * time.Second,
					HandshakeTimeout: wait.Patience})
				if err != nil {
					t.Errorf("opening a session: %v", err)
					return
				}
				c.Drop()
			}
		})
	}
	done.Wait()
	return func() {}
}
