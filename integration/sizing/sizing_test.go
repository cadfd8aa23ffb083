package sizing_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/sizing"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// What the servers are filled with; docs/sizing.md has results with more.
var (
	znodes   = flag.Int64("sizing.znodes", 100_000, "znodes to fill the servers with")
	size     = flag.Int64("sizing.bytes", 100, "bytes of data in each")
	sessions = flag.Int64("sizing.sessions", 3000, "sessions that are open")
	watches  = flag.Int64("sizing.watches", 300_000, "watches that wait")
)

const few = 10

// tolerance is how far an estimate may be from the measurement.
const tolerance = 0.25

// TestSizing compares the estimates with a real ensemble of three. All clients are at two of the servers, as if the
// third one were down. The collector runs often, so that the resident memory is hardly more than what is in use.
func TestSizing(t *testing.T) {
	e := cluster.Start(t, 3, cluster.Options{
		Env: []string{"GODEBUG=gctrace=1", "GOGC=10"},
		Config: map[string]string{
			"snapCount": "2000",
			// A busy machine and the collector keep a server from the leader for longer than half a second, after
			// which it would turn away those who open a session.
			"tickTime": "2000", "syncLimit": "30", "minSessionTimeout": "20000",
		},
	})
	l := sizing.Load{Servers: 3, Znodes: *znodes, Bytes: *size, Sessions: *sessions, Watches: *watches}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	want := l.Estimate()
	one := e.Server(1)
	empty := live(t, one)
	fill(t, e)
	cfg := load.Default()
	cfg.Hosts, cfg.Keys, cfg.ValueSize = []string{one.Addr(), e.Server(2).Addr()}, 100, int(*size)
	cfg.Prefix = "/" + strings.Repeat("w", sizing.Path-len("//nothing123456"))
	// Few sessions have the watches: a connection that has left many at once has a larger buffer for a while.
	for connections, n := range map[int]int{int(*sessions) - few: 1, few: int(*watches)} {
		cfg.Connections = connections
		armed, err := load.Arm(t.Context(), cfg, n)
		if err != nil {
			t.Fatal(err)
		}
		defer armed.Close()
	}
	// Writes, so that snapshots are taken, and what was garbage is collected.
	cfg.Mix, cfg.Prefix, cfg.Connections = load.Mix{{Op: load.Set, Weight: 1}}, "/churn", few
	cfg.Duration, cfg.WarmUp = 2*time.Second, 0
	began, written := time.Now(), int64(0)
	wait.Succeeds(t, "a snapshot", func() (err error) { // which takes more writes than a slow disk makes in one run
		if _, err := load.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		written, err = snapshot(one, began)
		return err
	})
	near(t, "memory in use", want.Live-sizing.Program, live(t, one)-empty)
	near(t, "snapshot", want.Snapshot, written)
	near(t, "tree by the server's count", want.Tree, metric(t, one, "tree_memory_bytes"))
	near(t, "log of a write", want.LogPerSet, proposal(t, e))
	most := resident(t, one)
	t.Logf("resident: at most %d, estimate %d", most, want.Resident)
	if most > want.Resident {
		t.Errorf("more was resident than the estimate says")
	}
}

func near(t *testing.T, what string, estimate, measured int64) {
	t.Helper()
	off := float64(estimate)/float64(measured) - 1
	t.Logf("%s: %d, estimate %d (%+.0f %%)", what, measured, estimate, 100*off)
	if math.Abs(off) > tolerance {
		t.Errorf("%s: the estimate is off by more than %.0f %%", what, 100*tolerance)
	}
}

// fill creates znodes with data that cannot be compressed, and paths as long as they are reckoned with.
func fill(t *testing.T, e *cluster.Ensemble) {
	t.Helper()
	const parent, atOnce, ahead = "/fill", 200, 8
	c, err := client.Connect(t.Context(), e.ConnectString())
	if err == nil {
		err = c.EnsurePath(t.Context(), parent, client.Persistent)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	random := rand.NewChaCha8([32]byte{})
	var under []*client.Pending[client.MultiReply]
	for i := int64(0); i < *znodes || len(under) > 0; {
		if i < *znodes && len(under) < ahead {
			m := c.Multi()
			for ; i < *znodes && m.Len() < atOnce; i++ {
				data := make([]byte, *size)
				_, _ = random.Read(data) // never fails
				name := make([]byte, (sizing.Path-len(parent)-1)/2)
				_, _ = random.Read(name)
				m.Create(fmt.Sprintf("%s/%x", parent, name), data, client.Persistent)
			}
			under = append(under, m.CommitAsync(t.Context()))
			continue
		}
		if _, err := under[0].Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		under = under[1:]
	}
}

// live returns the heap after a collection, with stacks: the least of the last samples, since later allocations count.
func live(t *testing.T, s *cluster.Server) int64 {
	t.Helper()
	all := regexp.MustCompile(`(?m)^gc \d+ @.*->(\d+) MB, .* (\d+) MB stacks`).FindAllStringSubmatch(s.Log(), -1)
	if all == nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for _, m := range all[max(0, len(all)-5):] {
		heap, _ := strconv.ParseInt(m[1], 10, 64)
		stacks, _ := strconv.ParseInt(m[2], 10, 64)
		least = min(least, (heap+stacks)<<20)
	}
	return least
}

// resident is the most that was resident of the process, in bytes.
func resident(t *testing.T, s *cluster.Server) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no VmHWM in %s", text)
	}
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kb << 10
}

// snapshot is the size of the newest one, which was written after a time.
func snapshot(s *cluster.Server, after time.Time) (bytes int64, err error) {
	all := s.Snapshots()
	if len(all) == 0 {
		return 0, os.ErrNotExist
	}
	info, err := os.Stat(all[len(all)-1])
	if err != nil {
		return 0, err
	}
	if info.ModTime().Before(after) {
		return 0, fmt.Errorf("the newest is %v old", time.Since(info.ModTime()))
	}
	return info.Size(), nil
}

// proposal is the size of an entry with one write, which holds its data at least: sessions that end are other entries.
func proposal(t *testing.T, e *cluster.Ensemble) (bytes int64) {
	t.Helper()
	c, err := client.Connect(t.Context(), e.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	path := "/" + strings.Repeat("p", sizing.Path-1)
	if _, _, err := c.Create(t.Context(), path, nil, client.Persistent); err != nil {
		t.Fatal(err)
	}
	wait.Succeeds(t, "the entry of a write", func() error {
		if _, err := c.Set(t.Context(), path, make([]byte, *size), client.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if bytes = metric(t, e.Leader(), "last_proposal_size"); bytes <= *size {
			return fmt.Errorf("the last one has %d bytes", bytes)
		}
		return nil
	})
	return bytes
}

func metric(t *testing.T, s *cluster.Server, name string) int64 {
	t.Helper()
	all, err := s.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(all[name], 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
