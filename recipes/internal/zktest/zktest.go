// Package zktest is for the tests of the recipes: servers to run against, connections
// that break where a test wants it, and checks that no watch and no goroutine is left.
//
// By default the servers are zk-lite's, in this process; with the build tag
// zookeeper they are Apache ZooKeeper's, from Debian's packages. The same tests
// run against both.
//
// It does not use the recipes.
package zktest

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/fourletter"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// SessionTimeout is what Connect asks for: so long that no session is lost because a process, or
// a disk, stands still for seconds. Expire ends one at once.
const SessionTimeout = 30 * time.Second

// Context returns a context that ends with the test, and after five minutes: some tests make thousands of requests.
func Context(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// Connect connects a client that is closed with the test.
func Connect(tb testing.TB, servers string, opts ...client.Option) *client.Client {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	opts = append([]client.Option{
		client.WithSessionTimeout(SessionTimeout),
		client.WithBackoff(time.Millisecond, 20*time.Millisecond),
	}, opts...)
	c, err := client.Connect(ctx, servers, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	return c
}

// ConnectTapped is Connect with a proxy between.
func ConnectTapped(tb testing.TB, servers string, opts ...client.Option) (*client.Client, *proxy.Proxy) {
	tb.Helper()
	tap := proxy.New()
	return Connect(tb, servers, append(opts, client.WithDialer(tap.Dial))...), tap
}

// Expire ends a client's current session at the servers, as if it had expired
// there.
func Expire(tb testing.TB, c *client.Client, servers string) {
	tb.Helper()
	session, credentials := c.Session(), c.Credentials()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		thief, err := client.Connect(ctx, servers, client.WithSession(credentials))
		if errors.Is(err, client.ErrSessionExpired) {
			break
		}
		if err != nil {
			tb.Fatal(err)
		}
		// The client may come back and take the session from the thief, and
		// ZooKeeper close the connection without an answer: look again.
		if thief.Close() == nil {
			break
		}
	}
	select {
	case <-session.Done():
	case <-ctx.Done():
		tb.Fatal("the client does not learn that its session is gone")
	}
}

// ours are the goroutines of the recipes, as opposed to those of their tests.
var ours = regexp.MustCompile(`zk-lite/recipes\.\(?\*?\w`)

// NoGoroutines waits until the recipes have no goroutine.
func NoGoroutines(tb testing.TB) {
	tb.Helper()
	wait.Until(tb, "no goroutine of the recipes is left", func() bool {
		buf := make([]byte, 4<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		for _, stack := range strings.Split(stacks, "\n\n") {
			if ours.MatchString(stack) {
				return false
			}
		}
		return true
	})
}

// NoWatches waits until a server has no watch.
func (s *Server) NoWatches(tb testing.TB) {
	tb.Helper()
	wait.Until(tb, "no watch is left at the server", func() bool {
		return strings.Contains(s.Ask("mntr"), "zk_watch_count\t0\n")
	})
}

// Watches is how many watches a server has on the data of a path or below it,
// counting those of a session on one path once; -1 if it does not answer. Servers
// do not report watches on children (DataTree.dumpWatches).
func (s *Server) Watches(path string) int {
	answer := s.Ask("wchp") // each path in a line, then indented its sessions
	if answer == "" {
		return -1
	}
	n, counts := 0, false
	for line := range strings.Lines(answer) {
		session := strings.HasPrefix(line, "\t")
		if !session {
			counts = strings.HasPrefix(strings.TrimSpace(line)+"/", path+"/")
		}
		if session && counts {
			n++
		}
	}
	return n
}

// Ensemble is a number of servers that belong together. It ends with the test.
type Ensemble struct {
	Servers []*Server
}

// Server is one of an ensemble.
type Server struct {
	Address string // of the client port
	process
}

// Start starts n servers, and waits until all of them serve.
func Start(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	e := newEnsemble(startProcesses(tb, n))
	for _, s := range e.Servers {
		s.WaitServing(tb)
	}
	return e
}

func newEnsemble(all []process) *Ensemble {
	e := new(Ensemble)
	for _, p := range all {
		e.Servers = append(e.Servers, &Server{Address: p.address(), process: p})
	}
	return e
}

// ConnectString names all servers.
func (e *Ensemble) ConnectString() string {
	var list []string
	for _, s := range e.Servers {
		list = append(list, s.Address)
	}
	return strings.Join(list, ",")
}

// WaitServing waits until the server answers clients.
func (s *Server) WaitServing(tb testing.TB) {
	tb.Helper()
	wait.Until(tb, s.Address+" serves", func() bool {
		return strings.Contains(s.Ask("srvr"), "Mode:")
	})
}

// Ask sends a four-letter word and returns the answer, or nothing if there is none.
func (s *Server) Ask(word string) string {
	answer, _ := fourletter.Ask(s.Address, word)
	return answer
}
