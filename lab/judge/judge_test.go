package judge

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// built builds a program of testdata.
func built(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", file, "./testdata/"+name).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return file
}

func judged(t *testing.T, c Config) Result {
	t.Helper()
	var log bytes.Buffer
	c.Seed, c.Log = 1, &log
	if c.N == 0 {
		c.N = 5
	}
	r, err := Judge(t.Context(), c)
	if err != nil {
		t.Fatalf("judging %v: %v\n%s", c.Command, err, log.String())
	}
	return r
}

// assertFails expects a failure of some kind, made small.
func assertFails(t *testing.T, r Result, kind, run string) {
	t.Helper()
	if r.Passed || r.Failure == nil || r.Failure.Kind != kind || r.Failure.Run != run || len(r.Records) == 0 {
		t.Errorf("passed %v, %+v, %d records; want a failure of %s by %s", r.Passed, r.Failure, len(r.Records), kind, run)
	}
}

func TestJudge_Go_RightPassWrongFail(t *testing.T) {
	tier.Seconds(t)
	ring, ricart := built(t, "ring"), built(t, "ricart")
	for _, c := range []Config{
		{Command: []string{ring}, Task: Election, Runs: 60},
		{Command: []string{ricart}, Task: Mutex, Runs: 60, Like: "ricart-agrawala", Reorder: true},
	} {
		if r := judged(t, c); !r.Passed || r.Runs != 60 || c.Like != "" && r.Compared == 0 {
			t.Errorf("%v: %+v, %+v, want 60 runs that pass", c.Command, r, r.Failure)
		}
	}
	assertFails(t, judged(t, Config{Command: []string{ring, "-wrong"}, Task: Election, Runs: 200, Like: "ring"}),
		"count", "--ids 2,1 --initiator 2,1")
	assertFails(t, judged(t, Config{Command: []string{ricart, "-forgets"}, Task: Mutex, Runs: 200}),
		"liveness", "--ids 1,2")
}

// skeleton writes the skeleton of a language into a file of a new folder, and returns the folder.
func skeleton(t *testing.T, language, name string) string {
	t.Helper()
	text, err := Skeleton(language)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// assertBegins expects that a program speaks the protocol, and that the judge says what it does not do yet.
func assertBegins(t *testing.T, command ...string) {
	t.Helper()
	for task, missing := range map[string]string{Election: `no process has answered {"leader": ITS-ID} yet`,
		Mutex: `no process has answered {"enter": true} yet`} {
		r := judged(t, Config{Command: command, Task: task, Runs: 10})
		if r.Passed || r.Failure.Kind != "liveness" || !strings.Contains(r.Failure.Text, missing) {
			t.Errorf("%v, %s: passed %v, %+v; want that it is not live, and %q", command, task, r.Passed, r.Failure, missing)
		}
	}
}

func TestSkeleton_Go_SpeaksTheProtocol(t *testing.T) {
	tier.Seconds(t)
	dir := skeleton(t, "go", "program.go")
	program := filepath.Join(dir, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(dir, "program.go"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	assertBegins(t, program)
	if _, err := Skeleton("basic"); err == nil || !strings.Contains(err.Error(), "go, python, java") {
		t.Errorf("a language without a skeleton: %v, want the languages", err)
	}
}

// TestJudge_Protocol_ErrorsNameTheAnswer: what a program may do wrong is said in its words.
func TestJudge_Protocol_ErrorsNameTheAnswer(t *testing.T) {
	for script, want := range map[string]string{
		`while read l; do echo no; done`:                                        `answered "no"`,
		`while read l; do echo '{"leader":99}'; done`:                           "leader 99: want one of",
		`while read l; do echo '{"send":[{"to":99,"type":"x"}]}'; done`:         "a message from",
		`while read l; do echo '{"sned":[]}'; done`:                             `unknown field "sned"`,
		`while read l; do echo '{"timers":[{"name":"leave"}]}'; done`:           "a timer named",
		`while read l; do echo '{"timers":[{"name":"x"}]}'; done`:               "want after",
		`while read l; do echo '{"enter":true}'; done`:                          "it enters",
		`while read l; do echo '{} {}'; done`:                                   "nothing behind it",
		`read l; echo '{}'`:                                                     "the program ended",
		`while read l; do head -c 70000 /dev/zero | tr '\0' x; done`:            "at most 65536 bytes",
		`while read l; do echo '{"timers":[{"name":"x","after":0.001}]}'; done`: "more than 20000 events",
	} {
		r := judged(t, Config{Command: []string{"bash", "-c", script}, Task: Election, Runs: 1, N: 2})
		if r.Passed || r.Failure.Kind != "protocol" || !strings.Contains(r.Failure.Text, want) {
			t.Errorf("%s: %+v, want %q", script, r.Failure, want)
		}
	}
}

func TestJudge_Errors(t *testing.T) {
	for name, c := range map[string]Config{
		"no program": {Task: Election, N: 3, Runs: 1},
		"task":       {Command: []string{"true"}, Task: "chess", N: 3, Runs: 1},
		"n":          {Command: []string{"true"}, Task: Election, N: 99, Runs: 1},
		"runs":       {Command: []string{"true"}, Task: Election, N: 3},
		"like":       {Command: []string{"true"}, Task: Mutex, N: 3, Runs: 1, Like: "bully"},
		"not there":  {Command: []string{"/nonexistent"}, Task: Mutex, N: 3, Runs: 1},
	} {
		if _, err := Judge(t.Context(), c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestCase_String_IsTheCommandsOptions: what is printed can be given to the lab again.
func TestCase_String_IsTheCommandsOptions(t *testing.T) {
	c := Case{Election: &election.Config{IDs: []sim.ID{3, 1, 2}, Seed: 7,
		Initiators: []election.Initiator{{ID: 1}, {ID: 2, At: sim.Unit / 2}},
		Faults:     []sim.Fault{{ID: 3}, {ID: 3, At: 5 * sim.Unit, Recover: true}},
		Network: sim.Network{Loss: 0.1, Drop: []sim.Nth{{Type: "answer", K: 2}}, Reorder: true,
			Delay: sim.Delay{Min: sim.Unit / 10, Max: sim.Unit}}}}
	const want = "--ids 3,1,2 --initiator 1,2@0.5 --crash 3@0 --recover 3@5 --drop answer@2 --loss 0.1 --reorder --delay 0.1-1 --seed 7"
	if got := c.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzDecode: no answer of a program may panic, and what is taken is within bounds.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"send":[{"to":5,"type":"answer","body":{"a":1}}]}`, `{"leader":null}`,
		`{"timers":[{"name":"a","after":2},{"name":"b","cancel":true}]}`, `{"variables":{"phase":"idle"}}`, `[`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := decode(line)
		if err != nil {
			return
		}
		n := node{ids: []sim.ID{1, 2, 3}, self: 1, leader: sim.None}
		var out sim.Output
		if err := n.take(a, &out); err == nil && (len(out.Sends) > maxSends || len(out.Timers) > maxSends+1) {
			t.Errorf("%q gives %d messages", line, len(out.Sends))
		}
	})
}
