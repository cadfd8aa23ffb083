// Package testserver is for the tests of the examples: an ensemble of servers in
// this process, clients whose connections can be cut, and the death of a process
// as the others see it.
//
// Processes are the same as real processes, copies of the test binary that are killed
// (SIGKILL) and paused (SIGSTOP): servers, and whatever roles an example has.
//
// It knows nothing of the examples, and is not for other tests: those of the
// recipes have a kit of their own, which also runs against Apache ZooKeeper.
//
// # Concurrency
//
// The servers have their own goroutines. An Ensemble belongs to the goroutine of its test.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// Ensemble is a number of servers in this process. It ends with the test.
type Ensemble struct{ *zklitetest.Ensemble }

// Start starts n servers, and waits until they serve.
func Start(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	return &Ensemble{zklitetest.Start(tb, zklitetest.WithServers(n))}
}

// settings are those of three servers that are processes of their own, as environment variables.
func settings(tb testing.TB) (all []map[string]string, connect string) {
	tb.Helper()
	const n = 3
	port, dir := ports.Take(tb, 3*n), tb.TempDir()
	var servers, addresses []string
	for i := range n {
		client := fmt.Sprintf("127.0.0.1:%d", port[3*i+2])
		addresses = append(addresses, client)
		servers = append(servers, fmt.Sprintf("%d=127.0.0.1:%d:%d;%s", i+1, port[3*i], port[3*i+1], client))
	}
	for i := range n {
		all = append(all, map[string]string{
			"ZK_LITE_MYID": strconv.Itoa(i + 1), "ZK_LITE_SERVERS": strings.Join(servers, " "),
			"ZK_LITE_DATA_DIR":            filepath.Join(dir, fmt.Sprintf("server-%d", i+1)),
			"ZK_LITE_ADMIN_ENABLE_SERVER": "false",
			"ZK_LITE_MAX_CLIENT_CNXNS":    "0", // all clients of a test have one address
			"ZK_LITE_TICK_TIME":           "100ms",
			"ZK_LITE_SYNC_LIMIT":          "50", // five seconds: a loaded machine is no dead server
			"ZK_LITE_MIN_SESSION_TIMEOUT": ChildSessionTimeout.String(), "ZK_LITE_MAX_SESSION_TIMEOUT": "1m",
		})
	}
	return all, strings.Join(addresses, ",")
}

// SessionTimeout is that of all clients: short, because tests wait for sessions to
// expire, and long enough for a loaded machine, on which a client may not run for seconds.
const SessionTimeout = 4 * time.Second

// Process imitates a process: it has its own session, and can be killed alone.
type Process struct {
	Client *client.Client
	Proxy  *proxy.Proxy

	ctx     context.Context
	cancel  context.CancelFunc
	running int
	ended   chan error
}

// Process connects a process. It ends with the test.
func (e *Ensemble) Process(tb testing.TB) *Process {
	tb.Helper()
	p := &Process{Proxy: proxy.New(), ended: make(chan error)}
	c, err := client.Connect(Context(tb), e.ConnectString(),
		client.WithSessionTimeout(SessionTimeout),
		client.WithBackoff(time.Millisecond, 20*time.Millisecond),
		client.WithDialer(p.Proxy.Dial))
	if err != nil {
		tb.Fatal(err)
	}
	p.Client = c
	p.ctx, p.cancel = context.WithCancel(context.Background())
	tb.Cleanup(func() { p.end(tb) })
	return p
}

// Go runs what the process does, until the process is killed or the test ends.
// That the end of its context is the reason for an error is no failure.
func (p *Process) Go(run func(context.Context, *client.Client) error) {
	p.running++
	go func() { p.ended <- run(p.ctx, p.Client) }()
}

// Kill kills the process: its connection breaks, and it is silent from then on.
// The servers are not informed.
func (p *Process) Kill(tb testing.TB) {
	tb.Helper()
	p.Proxy.Block()
	p.end(tb)
}

// end ends what runs and closes the client.
func (p *Process) end(tb testing.TB) {
	tb.Helper()
	p.cancel()
	for ; p.running > 0; p.running-- {
		if err := <-p.ended; err != nil && !errors.Is(err, context.Canceled) {
			tb.Errorf("a process has ended with: %v", err)
		}
	}
	_ = p.Client.Close() // after Kill it cannot close its session, as intended
}

// Context returns a context that ends with the test, and after wait.Patience.
func Context(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), wait.Patience)
	tb.Cleanup(cancel)
	return ctx
}

// Rand returns a source of randomness and prints its seed.
func Rand(tb testing.TB) *rand.Rand {
	tb.Helper()
	return seed.Rand(tb)
}
