package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Check is what came of one check of a client's program.
type Check struct {
	// Name is the check's, OK its outcome.
	Name string `json:"check"`
	OK   bool   `json:"ok"`
	// Absent says that this client has no means to do what the check is about.
	Absent bool   `json:"absent"`
	Detail string `json:"detail"`
}

// message is a line that a client's program prints: a check that has ended, or one of the other fields.
type message struct {
	Check
	// Kill is the address of a server to kill. The program waits for a line as
	// answer, as it does for the next one.
	Kill string `json:"kill"`
	// Heal asks that all servers are started and serve.
	Heal bool `json:"heal"`
	// End is the number of checks, in the last line, so that a program that ends
	// early is found out.
	End int `json:"end"`
}

// Drive runs a client's program to its end, does to the servers what it asks for, and hands its checks to hear. Whether
// they failed is for hear to judge; a program that breaks the protocol or fails as a whole fails the test.
func (e *Ensemble) Drive(t *testing.T, dir string, hear func(Check), args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ProgramPatience)
	defer cancel()
	c := Command(ctx, dir, args...)
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
	e.converse(t, hear, out, in)
	if err := c.Wait(); err != nil {
		t.Errorf("%s: %v", args[0], err)
	}
	if t.Failed() {
		text, err := os.ReadFile(logged.Name())
		t.Logf("what %s logged: %s, %v", args[0], text[max(0, len(text)-ProgramTail):], err)
	}
}

// converse reads a program's output until it ends, and executes its requests.
func (e *Ensemble) converse(t *testing.T, hear func(Check), out io.Reader, in io.Writer) {
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
		case m.Name != "":
			checks++
			hear(m.Check)
		case m.End != 0:
			end = m.End
		case m.Kill != "":
			e.killAt(t, m.Kill)
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

// killAt ends the server at an address.
func (e *Ensemble) killAt(t *testing.T, addr string) {
	t.Helper()
	for _, s := range e.servers {
		if s.Addr() == addr {
			s.Kill()
			return
		}
	}
	t.Fatalf("the program asked to kill %q, which is none of %s", addr, e.ConnectString())
}
