//go:build interop

package interop_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// maxLine bounds a line of a program.
const maxLine = 1 << 20

// againstVariable, when it is "zookeeper", puts a real ZooKeeper ensemble in
// the place of zk-lite, which shows whether the checks themselves are right.
const againstVariable = "ZK_LITE_INTEROP_AGAINST"

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// ensemble starts the three servers that clients are run against.
func ensemble(t *testing.T) *cluster.Ensemble {
	t.Helper()
	if os.Getenv(againstVariable) == "zookeeper" {
		return cluster.StartZooKeeper(t, 3, cluster.Options{})
	}
	return cluster.Start(t, 3, cluster.Options{})
}

// atRest starts the killed servers and compares the replicas.
func atRest(t *testing.T, e *cluster.Ensemble) {
	t.Helper()
	e.StartAll()
	e.WaitServing()
	if os.Getenv(againstVariable) == "" {
		e.CheckReplicas()
	}
}

// message is a line that a client's program prints. One field besides OK and
// Detail is set.
type message struct {
	// Check is the name of a check that has ended, OK its outcome.
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Kill is the address of a server to kill. The program waits for a line as
	// answer, as it does for the next one.
	Kill string `json:"kill"`
	// Heal asks that all servers are started and serve.
	Heal bool `json:"heal"`
	// End is the number of checks, in the last line, so that a program that ends
	// early is found out.
	End int `json:"end"`
}

// drive runs a client's program against an ensemble, makes a subtest of each of
// its checks, and compares the replicas.
func drive(t *testing.T, e *cluster.Ensemble, dir string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.ProgramPatience)
	defer cancel()
	c := cluster.Command(ctx, dir, args...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	logged, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer logged.Close()
	c.Stderr = logged
	if err := c.Start(); err != nil {
		t.Fatalf("starting %s: %v", args[0], err)
	}
	converse(t, e, out, in)
	if err := c.Wait(); err != nil {
		t.Errorf("%s: %v", args[0], err)
	}
	if t.Failed() {
		text, err := os.ReadFile(logged.Name())
		t.Logf("what %s logged: %s, %v", args[0], text[max(0, len(text)-cluster.ProgramTail):], err)
	}
	atRest(t, e)
}

// converse reads a program's output until it ends, and executes its requests.
func converse(t *testing.T, e *cluster.Ensemble, out io.Reader, in io.Writer) {
	t.Helper()
	checks, end := 0, 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Errorf("the program printed %q: %v", lines.Text(), err)
			continue
		}
		switch {
		case m.Check != "":
			checks++
			t.Run(m.Check, func(t *testing.T) {
				if !m.OK {
					t.Errorf("the check failed: %s", m.Detail)
				} else if m.Detail != "" {
					t.Log(m.Detail)
				}
			})
		case m.End != 0:
			end = m.End
		case m.Kill != "":
			kill(t, e, m.Kill)
			fmt.Fprintln(in, "done")
		case m.Heal:
			e.StartAll()
			e.WaitServing()
			fmt.Fprintln(in, "done")
		default:
			t.Errorf("the program printed %q, which means nothing", lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("reading what the program prints: %v", err)
	}
	if checks == 0 || checks != end {
		t.Errorf("the program did not come to its end: %d checks, its last line says %d", checks, end)
	}
}

// kill ends the server at an address.
func kill(t *testing.T, e *cluster.Ensemble, addr string) {
	t.Helper()
	for _, s := range e.Servers() {
		if s.Addr() == addr {
			s.Kill()
			return
		}
	}
	t.Fatalf("the program asked to kill %q, which is none of %s", addr, e.ConnectString())
}
