package testserver

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// SessionTimeout is that of all clients: short, because tests wait for sessions to
// expire, and long enough for a loaded machine.
const SessionTimeout = time.Second

// Process stands for a process of its own: it has its own session, and can be
// killed, alone.
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

// Kill kills the process: its connection breaks, and nothing is heard of it any
// more. It says nothing to the servers; they have to find out.
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
	_ = p.Client.Close() // after Kill it cannot say goodbye, as it should be
}

// Context returns a context that ends with the test, and after half a minute.
func Context(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	tb.Cleanup(cancel)
	return ctx
}

// Rand returns a source of randomness and prints its seed.
func Rand(tb testing.TB) *rand.Rand {
	tb.Helper()
	return seed.Rand(tb)
}
