package labcli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/lab/election"
)

// TestJSON_Keys: every run's JSON has at least these keys, with total the sum of
// by_type.
func TestJSON_Keys(t *testing.T) {
	for _, line := range []string{
		"election --algorithm bully --json", "election --algorithm ring --json",
		"election --algorithm lcr --json", "election --algorithm hs --json",
		"election --algorithm broadcast --json", "election --algorithm anonymous --json",
		"election --algorithm majority --json", "election --algorithm zookeeper-herd --json",
		"election --algorithm zookeeper --json --trace", "mutex --algorithm central --json",
		"mutex --algorithm token-ring --json", "mutex --algorithm lamport --json",
		"mutex --algorithm ricart-agrawala --json", "mutex --algorithm maekawa --json",
		"mutex --algorithm zookeeper --json", "detector --json", "problem --json",
		"problem --algorithm zab --json",
	} {
		out, err := output(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(out), &object); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		for _, key := range []string{"algorithm", "n", "messages", "time", "leader", "safe", "live", "seed"} {
			if _, ok := object[key]; !ok {
				t.Errorf("%s: no key %q", line, key)
			}
		}
		var messages struct {
			Total  int            `json:"total"`
			ByType map[string]int `json:"by_type"`
		}
		if err := json.Unmarshal(object["messages"], &messages); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		for _, k := range messages.ByType {
			messages.Total -= k
		}
		if messages.Total != 0 || len(messages.ByType) == 0 {
			t.Errorf("%s: total is not the sum of by_type %v", line, messages.ByType)
		}
	}
}

// TestOutput_SameSeed_SameBytes runs commands with much randomness twice, files
// included.
func TestOutput_SameSeed_SameBytes(t *testing.T) {
	dir := t.TempDir()
	for _, line := range []string{
		"election --algorithm majority --n 9 --delay 0.1-3 --loss 0.1 --seed 42 --trace --json",
		"election --algorithm zookeeper --n 9 --delay 0.1-1 --crash 1@20 --seed 42 --trace",
		"mutex --algorithm maekawa --n 12 --requests 4 --delay 0.1-1 --seed 42 --trace",
		"detector --duplication 0.3 --seed 42 --sweep --json",
		"table --n 6,16 --json",
	} {
		files := ""
		if strings.Contains(line, "--trace") {
			files = " --svg " + filepath.Join(dir, "a.svg") + " --html " + filepath.Join(dir, "a.html")
		}
		read := func() string {
			out, err := output(t, line+files)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if files != "" {
				for _, name := range []string{"a.svg", "a.html"} {
					data, err := os.ReadFile(filepath.Join(dir, name))
					if err != nil || len(data) < 1000 {
						t.Fatalf("%s: %d bytes, %v", name, len(data), err)
					}
					out += string(data)
				}
			}
			return out
		}
		if first, second := read(), read(); first != second {
			t.Errorf("%s printed two different things", line)
		}
	}
}

func TestElection_Picture_ErrorNamesTheFile(t *testing.T) {
	_, err := output(t, "election --svg /nonexistent/dir/a.svg")
	if err == nil || !strings.Contains(err.Error(), "/nonexistent/dir/a.svg") {
		t.Errorf("got %v", err)
	}
}

// fakeRunner stands for a running ensemble.
type fakeRunner struct{ outcome election.Outcome }

func (f fakeRunner) KillLeader(_ context.Context, _ election.KillLeader) (election.Outcome, error) {
	return f.outcome, nil
}

// TestScenario_Real_LaidBeside: the seam for a real ensemble, with one that keeps
// the recipe's promise and one that does not.
func TestScenario_Real_LaidBeside(t *testing.T) {
	run := func(o election.Outcome) string {
		var b strings.Builder
		c := Command(Options{Real: func(servers string) (election.Runner, error) {
			if servers != "a:1" {
				return nil, errors.New("wrong servers " + servers)
			}
			return fakeRunner{o}, nil
		}})
		c.SetOut(&b)
		c.SetArgs([]string{"scenario", "--n", "5", "--servers", "a:1"})
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	good := run(election.Outcome{Events: 1, Requests: 1, Leaders: 1, Changed: true})
	if !strings.Contains(good, "ensemble:") || strings.Contains(good, "broken") {
		t.Errorf("good ensemble: %s", good)
	}
	bad := run(election.Outcome{Events: 4, Leaders: 1, Changed: true})
	if !strings.Contains(bad, "broken promise: ensemble: the kill caused 4 watch events: want 1") {
		t.Errorf("bad ensemble: %s", bad)
	}
}

// FuzzCommand gives the election command any value for its textual flags: it may
// refuse, never panic, and what it runs must end.
func FuzzCommand(f *testing.F) {
	f.Add("3,5,6", "5@1", "0.5-2", "1,2|3@0-4", "answer@1")
	f.Add("1", "1@0", "1", "1@0-1", "x@1")
	f.Add("", "", "", "", "")
	f.Fuzz(func(t *testing.T, ids, crash, delay, partition, drop string) {
		if len(ids) > 60 || len(delay) > 8 || len(crash) > 12 || len(partition) > 30 {
			return // larger inputs make longer runs, not other ones
		}
		c := Command(Options{})
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetOut(&strings.Builder{})
		c.SetArgs([]string{"election", "--ids=" + ids, "--crash=" + crash, "--delay=" + delay,
			"--partition=" + partition, "--drop=" + drop, "--algorithm=ring", "--max-time=500"})
		_ = c.ExecuteContext(t.Context())
	})
}
