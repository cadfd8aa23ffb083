package testserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
)

// ChildSessionTimeout is that of the processes. It may be shorter than the one within a
// test: a role that loses its session is started again.
const ChildSessionTimeout = 2 * time.Second

// childPatience bounds the tests with processes, on a machine that is busy.
const childPatience = 4 * time.Minute

// Processes is an ensemble of three servers, each a process of its own, and of
// processes that have roles. All end with the test.
type Processes struct {
	Context context.Context // ends with the test, and after a while
	Client  *client.Client  // of the test itself
	Rand    *rand.Rand

	tb       testing.TB
	settings []map[string]string
	connect  string // names all servers
	servers  []*Child
	started  int
}

// StartProcesses starts the servers. The package's TestMain must call Main.
func StartProcesses(tb testing.TB) *Processes {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), childPatience)
	tb.Cleanup(cancel)
	p := &Processes{Context: ctx, Rand: Rand(tb), tb: tb}
	p.settings, p.connect = settings(tb)
	for i := range p.settings {
		p.servers = append(p.servers, nil)
		p.StartServer(i)
	}
	// No test waits for the end of this session, and each fails with it: it outlasts elections.
	c, err := client.Connect(ctx, p.connect, client.WithSessionTimeout(30*time.Second))
	if err != nil {
		tb.Fatal(err)
	}
	p.Client = c
	tb.Cleanup(func() { _ = c.Close() }) // the servers may be in the middle of something
	return p
}

// StartServer starts a server, again after Child.Kill.
func (p *Processes) StartServer(i int) {
	p.tb.Helper()
	p.servers[i] = startChild(p.tb, childTask{
		Role: serverRole, Name: fmt.Sprintf("server %d", i+1), Settings: p.settings[i],
	})
}

// Server is the process of a server.
func (p *Processes) Server(i int) *Child { return p.servers[i] }

// Run starts a process that has a role, with a unique name.
func (p *Processes) Run(role, arg string) *Child {
	p.tb.Helper()
	p.started++
	return startChild(p.tb, childTask{
		Role: role, Name: fmt.Sprintf("%s-%d", role, p.started), Arg: arg,
		Servers: p.connect,
	})
}

// RestartServer kills a server at random, lets a moment pass and starts it again.
func (p *Processes) RestartServer() {
	p.tb.Helper()
	i := p.Rand.IntN(len(p.servers))
	p.servers[i].Kill()
	p.Pass(300 * time.Millisecond)
	p.StartServer(i)
}

// PauseServer stops a server at random for a moment.
func (p *Processes) PauseServer() {
	s := p.servers[p.Rand.IntN(len(p.servers))]
	s.Pause()
	p.Pass(time.Second)
	s.Resume()
}

// Pass lets some time pass, at most d.
func (p *Processes) Pass(d time.Duration) {
	ctx, cancel := context.WithTimeout(p.Context, time.Duration(p.Rand.Int64N(int64(d))))
	defer cancel()
	<-ctx.Done()
}

// childVariable holds the task of a process that is a copy of the test binary, as
// the JSON of childTask. Only startChild sets it.
const childVariable = "ZK_LITE_EXAMPLES_CHILD"

// childTask is the task of a child.
type childTask struct {
	Role     string
	Name     string
	Arg      string            // of the role
	Servers  string            // to connect to
	Settings map[string]string // of a server: environment variables
}

// serverRole is the role of servers.
const serverRole = "server"

// Role is the work of an example's process until it is killed. The argument is the
// test's. It is started again if a lost connection or session ends it.
type Role func(ctx context.Context, c *client.Client, name, arg string) error

// Main is for the TestMain of a package whose tests run processes: it runs the tests,
// or, in a process that a test has started, the role. It returns the exit code.
func Main(m *testing.M, roles map[string]Role) int {
	text := os.Getenv(childVariable)
	if text == "" {
		return m.Run()
	}
	var task childTask
	err := json.Unmarshal([]byte(text), &task)
	if err == nil {
		err = task.run(roles)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (t *childTask) run(roles map[string]Role) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if t.Role == serverRole {
		return t.serve(ctx)
	}
	role := roles[t.Role]
	if role == nil {
		return fmt.Errorf("there is no role %q", t.Role)
	}
	c, err := client.Connect(ctx, t.Servers, client.WithSessionTimeout(ChildSessionTimeout))
	if err != nil {
		return err
	}
	for { // the session is left to expire when the process is killed
		if err = role(ctx, c, t.Name, t.Arg); !passing(err) {
			return err
		}
	}
}

// passing reports whether an error is one after which a supervisor would start the
// program again: a server died at the wrong moment.
func passing(err error) bool {
	return errors.Is(err, client.ErrSessionExpired) || errors.Is(err, client.ErrConnectionLoss) ||
		errors.Is(err, client.ErrOutcomeUnknown)
}

func (t *childTask) serve(ctx context.Context) error {
	settings, _, err := config.Load(nil, func(name string) (string, bool) { v, ok := t.Settings[name]; return v, ok })
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	n, err := app.Open(app.Options{
		Settings: settings, Version: "test",
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Fatal: func(err error) {
			select {
			case failed <- err:
			default:
			}
		},
	})
	if err != nil {
		return err
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	return errors.Join(err, n.Close())
}

// Child is a process that a test has started: a server, or one that has a role.
type Child struct {
	Name string
	*process.Process
}

// startChild starts a copy of the test binary with a task. It is killed when the test
// ends; that it ends before without having been killed is a failure.
func startChild(tb testing.TB, task childTask) *Child {
	tb.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		tb.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	p, err := process.Start(process.Command{Args: []string{self}, Env: []string{childVariable + "=" + string(text)},
		Log: filepath.Join(tb.TempDir(), "log")})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.EndedEarly(); err != nil {
			tb.Errorf("%s: %v", task.Name, err)
		}
		p.Kill()
		if tb.Failed() {
			tb.Logf("the log of %s: %s", task.Name, p.Tail())
		}
	})
	return &Child{task.Name, p}
}
