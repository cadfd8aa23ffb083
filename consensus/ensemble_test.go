package consensus

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

func TestEnsemble_Form_WriteThroughEveryServer(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	start := time.Now()
	for i := range e.nodes {
		e.must(i, fmt.Sprintf("/n%d", i))
	}
	t.Logf("formed and wrote after %v", time.Since(start))
	e.agree()
}

func TestEnsemble_LeaderStops_PendingCommandsSurviveOnce(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	old := e.leader()
	follower := (old + 1) % 3
	const n = 2000
	done := make(chan outcome, n)
	for k := range n {
		if err := e.nodes[follower].Propose(create(fmt.Sprintf("/k%d", k)), waiter{done}, forward.From{}); err != nil {
			t.Fatal(err)
		}
		if k == n/2 {
			go e.nodes[old].Ensemble().Transfer()
		}
	}
	for range n { // a command applied twice would say NODEEXISTS
		if o := e.await("a create", done); o.lost || o.Code != znode.OK {
			t.Fatalf("create: %v, lost: %t; want OK, not lost", o.Code, o.lost)
		}
	}
	e.agree()
}

func TestEnsemble_RestartAll_KeepsEverything(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, func(c *Config) { c.SnapshotCommands = 100 })
	done := make(chan outcome, 1000)
	for k := range 1000 {
		if err := e.nodes[k%3].Propose(create(fmt.Sprintf("/k%d", k)), waiter{done}, forward.From{}); err != nil {
			t.Fatal(err)
		}
		if k%10 == 9 {
			for range 10 {
				e.await("a create", done)
			}
		}
	}
	e.agree()
	_, before := e.nodes[0].handler.digest()
	for i := range e.nodes {
		e.stop(i)
	}
	for i := range e.nodes {
		e.mustStart(i)
	}
	for _, x := range e.nodes {
		wait.Until(t, "everything is back", func() bool { _, d := x.handler.digest(); return d == before })
	}
}

// With an election timeout of a minute no server would notice a dead leader in time: the
// next leader got leadership from the one before.
func TestNode_Close_HandsLeadershipOver(t *testing.T) {
	t.Parallel()
	e := newTestEnsemble(t, 3, func(c *Config) {
		c.NoFailover = true
		c.ElectionTimeout = testElection
		if c.Servers[0].ID == c.ID { // the first to stand for election
			return
		}
		c.ElectionTimeout = time.Minute
	})
	e.must(1, "/before")
	old := e.leader()
	start := time.Now()
	e.stop(old)
	i := (old + 1) % 3
	e.must(i, "/after")
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("the next write took %v, as long as an election", took)
	}
	if next := e.leader(); next == old {
		t.Errorf("server %d leads, and was closed", next)
	}
}

// When a server is stopped in good order, raft has nothing to complain about.
func TestNode_Close_LogsNothingAboveInfo(t *testing.T) {
	var out logBuffer
	e := newTestEnsemble(t, 1, func(c *Config) { c.Logger = out.logger() })
	e.leader()
	out.take()
	e.stop(0)
	for line := range strings.Lines(out.take()) {
		if strings.Contains(line, `"subsystem":"raft`) && !strings.Contains(line, `"level":"INFO"`) {
			t.Errorf("raft's log: want INFO alone, got %s", line)
		}
	}
}

// logBuffer is what a server's logger has written.
type logBuffer struct {
	mu sync.Mutex // protects the field below
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// take returns what was written since the last call.
func (l *logBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }
