package testserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/client"
)

// ChildSessionTimeout is that of the processes: longer than the one within a test,
// because killed servers have to start again.
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
	settings []config.Settings
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
	c, err := client.Connect(ctx, p.connect, client.WithSessionTimeout(10*time.Second))
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

// Run starts a process that has a role, with a name that nobody else has.
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
