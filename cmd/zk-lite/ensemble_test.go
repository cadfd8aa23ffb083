package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// superDigest is that of super:secret.
const superDigest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="

// scriptEnsemble is the servers of one script, each with its HTTP API.
type scriptEnsemble struct {
	dir      string
	ports    []*ports.Reservation
	settings []config.Settings
	nodes    []*app.Server // nil: stopped
}

// open starts n servers and waits until all serve.
func (e *scriptEnsemble) open(n int) error {
	ports, err := e.take(4 * n)
	if err != nil {
		return err
	}
	for i := range n {
		s, err := e.defaults(i+1, ports[4*i:])
		if err != nil {
			return err
		}
		e.settings = append(e.settings, s)
	}
	var members []config.Server
	for _, s := range e.settings {
		members = append(members, s.Servers...)
	}
	for i := range e.settings {
		e.settings[i].Servers = members
		if err := e.start(i); err != nil {
			return err
		}
	}
	return e.await()
}

// defaults are the settings of a server that knows itself only.
func (e *scriptEnsemble) defaults(id int, ports []int) (config.Settings, error) {
	s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
	if err != nil {
		return s, err
	}
	s.MyID = id
	s.DataDir = filepath.Join(e.dir, fmt.Sprintf("server-%d", id))
	s.DataLogDir = s.DataDir
	s.ClientPortAddress, s.ClientPort = "127.0.0.1", ports[2]
	s.AdminAddress, s.AdminPort = "127.0.0.1", ports[3]
	s.ZooKeeper.Words = []string{"*"}
	s.ZooKeeper.MaxPerAddress = 0
	s.Server.Tick, s.SyncLimit, s.Consensus.Autopilot.StableTime = 100*time.Millisecond, 25, time.Second
	s.Auth.SuperDigest, s.Standalone = superDigest, false
	s.Servers = []config.Server{{
		ID: id, Host: "127.0.0.1", PeerPort: ports[0], ElectionPort: ports[1],
		Role: config.Participant, ClientHost: "127.0.0.1", ClientPort: ports[2],
	}}
	return s, nil
}

func (e *scriptEnsemble) start(i int) error {
	n, err := app.Open(app.Options{
		Settings: e.settings[i], Version: "test", Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { panic(fmt.Sprintf("server %d: %v", i+1, err)) },
	})
	if err != nil {
		return err
	}
	for len(e.nodes) <= i {
		e.nodes = append(e.nodes, nil)
	}
	e.nodes[i] = n
	return nil
}

// await waits until all that run serve.
func (e *scriptEnsemble) await() error {
	for i, n := range e.nodes {
		if n != nil && !wait.Holds(n.Server().Serving) {
			return fmt.Errorf("server %d does not serve", i+1)
		}
	}
	return nil
}

func (e *scriptEnsemble) stop(i int) error {
	n := e.nodes[i]
	if n == nil {
		return nil
	}
	e.nodes[i] = nil
	return n.Close()
}

func (e *scriptEnsemble) url(i int) string {
	return fmt.Sprintf("http://127.0.0.1:%d", e.settings[i].AdminPort)
}

// take returns n ports that are the script's until it ends.
func (e *scriptEnsemble) take(n int) ([]int, error) {
	r, err := ports.Reserve(n)
	if err != nil {
		return nil, err
	}
	e.ports = append(e.ports, r)
	return r.Ports, nil
}

type ensembleKey struct{}

// ensembleCommands are what the scripts of testdata/ensemble have:
//
//	exits CODE PROGRAM ARGS... run a program that ends with a code
//	ensemble N                 start N servers of the script's own: $HTTP1 to $HTTPN, $SERVER1 to $SERVERN,
//	                           and all of them in $ZK_LITE_SERVER and $CONFIGURED
//	newcomer                   choose ports for one more server, $HTTP4 and $ADDRESS4; its token goes to token4
//	startserver N, stopserver N
//	leader [not] N             wait until server N leads, or another
//	eventually REGEXP PROGRAM ARGS...  run a program until its output matches
//	checktoken PATH FILE STATE ask the HTTP API about the fencing token in a file
//	serve FILE NAME            answer every HTTP request with a file, at $NAME
//	damage FILE                cut the last byte off a file
//	foreign BACKUP FILE        write a copy of a backup that says that another ensemble has made it
func ensembleCommands() map[string]func(*testscript.TestScript, bool, []string) {
	type scriptCommand = func(*testscript.TestScript, *scriptEnsemble, []string)
	with := func(f scriptCommand) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg {
				ts.Fatalf("! has no meaning here")
			}
			f(ts, ts.Value(ensembleKey{}).(*scriptEnsemble), args)
		}
	}
	number := func(ts *testscript.TestScript, args []string, at int) int {
		n, err := strconv.Atoi(append(args, "", "")[at])
		ts.Check(err)
		return n
	}
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits,
		"ensemble": with(func(ts *testscript.TestScript, e *scriptEnsemble, args []string) {
			ts.Check(e.open(number(ts, args, 0)))
			var servers, lines []string
			for i := range e.nodes {
				ts.Setenv(fmt.Sprintf("HTTP%d", i+1), e.url(i))
				ts.Setenv(fmt.Sprintf("SERVER%d", i+1), e.nodes[i].ClientAddr().String())
				own := e.settings[i].Servers[i]
				lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", i+1, own.PeerPort, own.ElectionPort))
				servers = append(servers, e.nodes[i].ClientAddr().String())
			}
			ts.Setenv("CONFIGURED", strings.Join(lines, " "))
			ts.Setenv("ZK_LITE_SERVER", strings.Join(servers, ","))
		}),
		"newcomer": with(func(ts *testscript.TestScript, e *scriptEnsemble, _ []string) {
			ports, err := e.take(4)
			ts.Check(err)
			id := len(e.settings) + 1
			s, err := e.defaults(id, ports)
			ts.Check(err)
			s.Servers = append(e.settings[0].Servers[:id-1:id-1], s.Servers...)
			s.PeerTLS.Keys.SecretFile = ts.MkAbs(fmt.Sprintf("token%d", id))
			e.settings = append(e.settings, s)
			ts.Setenv(fmt.Sprintf("HTTP%d", id), e.url(id-1))
			ts.Setenv(fmt.Sprintf("ADDRESS%d", id),
				fmt.Sprintf("127.0.0.1:%d:%d;127.0.0.1:%d", ports[0], ports[1], ports[2]))
		}),
		"startserver": with(func(ts *testscript.TestScript, e *scriptEnsemble, args []string) {
			ts.Check(e.start(number(ts, args, 0) - 1))
		}),
		"stopserver": with(func(ts *testscript.TestScript, e *scriptEnsemble, args []string) {
			ts.Check(e.stop(number(ts, args, 0) - 1))
		}),
		"awaithalted": with(func(ts *testscript.TestScript, e *scriptEnsemble, args []string) {
			i := number(ts, args, 0) - 1
			if !wait.Holds(func() bool { return e.nodes[i].Server().Status().Halt != nil }) {
				ts.Fatalf("server %s is not halted", args[0])
			}
		}),
		"leader": with(func(ts *testscript.TestScript, e *scriptEnsemble, args []string) {
			not := args[0] == "not"
			id := number(ts, args, len(args)-1)
			if !wait.Holds(func() bool {
				for _, n := range e.nodes {
					if n != nil {
						now := int(n.Server().Status().Leader)
						if now == 0 || (now == id) == not {
							return false
						}
					}
				}
				return true
			}) {
				ts.Fatalf("leader %q does not become true", args)
			}
		}),
		"eventually": with(func(ts *testscript.TestScript, _ *scriptEnsemble, args []string) {
			if len(args) < 2 {
				ts.Fatalf("usage: eventually REGEXP PROGRAM ARGS...")
			}
			want := regexp.MustCompile("(?m)" + args[0])
			if !wait.Holds(func() bool {
				return ts.Exec(args[1], args[2:]...) == nil && want.MatchString(ts.ReadFile("stdout"))
			}) {
				ts.Fatalf("it does not become true that the output matches %q", want)
			}
		}),
		"checktoken": with(func(ts *testscript.TestScript, e *scriptEnsemble, args []string) {
			ask, err := json.Marshal(map[string]string{
				"path": args[0], "fencing_token": strings.TrimSpace(ts.ReadFile(args[1])),
			})
			ts.Check(err)
			resp, err := http.Post(e.url(0)+"/v1/fencing-tokens/check", "application/json", bytes.NewReader(ask))
			ts.Check(err)
			defer resp.Body.Close()
			var answer struct{ State string }
			ts.Check(json.NewDecoder(resp.Body).Decode(&answer))
			if resp.StatusCode != http.StatusOK || answer.State != args[2] {
				ts.Fatalf("%s: status %d, state %q, want %q", ask, resp.StatusCode, answer.State, args[2])
			}
		}),
		"serve": with(func(ts *testscript.TestScript, _ *scriptEnsemble, args []string) {
			b, err := os.ReadFile(ts.MkAbs(args[0]))
			ts.Check(err)
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(b) // a command that does not read it all has seen enough
			}))
			ts.Defer(web.Close)
			ts.Setenv(args[1], web.URL)
		}),
		"damage": with(func(ts *testscript.TestScript, _ *scriptEnsemble, args []string) {
			b, err := os.ReadFile(ts.MkAbs(args[0]))
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), b[:len(b)-1], 0o600))
		}),
		"foreign": with(func(ts *testscript.TestScript, _ *scriptEnsemble, args []string) {
			b, err := os.ReadFile(ts.MkAbs(args[0]))
			ts.Check(err)
			m, err := state.ReadSnapshot(bytes.NewReader(b))
			ts.Check(err)
			s := m.Snapshot()
			defer s.Release()
			var out bytes.Buffer
			ts.Check(s.WriteBackup(&out, [16]byte{1}))
			ts.Check(os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o600))
		}),
	}
}

// TestCLI_Ensemble runs the scripts of testdata/ensemble, which change and break the
// servers, each against an ensemble of its own.
func TestCLI_Ensemble(t *testing.T) {
	tier.Seconds(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "ensemble"), Cmds: ensembleCommands(),
		RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			e := &scriptEnsemble{dir: filepath.Join(env.WorkDir, ".servers")}
			env.Values[ensembleKey{}] = e
			env.Defer(func() {
				for i := range e.nodes {
					_ = e.stop(i) // the script may have left it in any state
				}
				for _, r := range e.ports {
					r.Release()
				}
			})
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("SUPER", "digest:super:secret")
			ownFiles(env)
			return nil
		},
	})
}
