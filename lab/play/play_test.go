package play

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/trace"
)

func lineTrace(t *testing.T, line string) trace.Trace {
	t.Helper()
	tr, err := Run(strings.Fields(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return tr
}

// lines has a run of each family, with faults of every kind.
func lines() []string {
	return []string{
		"election --algorithm bully --ids 3,5,6,12,32,80 --crash 80@0 --initiator 6",
		"election --algorithm ring --ids 3,32,5,80,6,12 --initiator 3 --crash 80@9.5 --detector successor",
		"election --algorithm hs --ids 6,1,2,5,3,4",
		"election --algorithm broadcast --n 3 --drop id@6",
		"election --algorithm majority --n 5 --loss 0.2 --duplication 0.2 --delay 0.5-2",
		"election --algorithm zookeeper --n 4 --crash 1@8 --recover 1@40",
		"election --algorithm bully --detector heartbeat --loss 0.1",
		"mutex --algorithm central --n 3 --crash S@1.5 --recover S@5",
		"mutex --algorithm token-ring --n 4 --duplicate token@2 --hold 3",
		"mutex --algorithm lamport --n 3 --clock 2=2,3=3",
		"mutex --algorithm maekawa --n 9 --plain",
		"problem --algorithm primary-backup --crash 1@5",
		"problem --algorithm zab --crash 1@2 --recover 1@30",
		"problem --algorithm deadlock --n 4",
		"explore --algorithm maekawa --plain --find deadlock",
		"detector --n 3 --length 20 --late heartbeat@3=9",
	}
}

// TestRun_Trace_AddsUp holds a trace to what it promises: times do not decrease, each
// message is sent by a step and ends where it says, and counts are those of the result.
func TestRun_Trace_AddsUp(t *testing.T) {
	for _, line := range lines() {
		tr := lineTrace(t, line)
		if len(tr.Steps) == 0 || len(tr.Messages) == 0 || len(tr.Processes) == 0 {
			t.Errorf("%s: %d steps, %d messages", line, len(tr.Steps), len(tr.Messages))
		}
		sends, last, sent := map[int]int{}, 0.0, map[string]int{}
		for i, s := range tr.Steps {
			if s.At < last {
				t.Errorf("%s: step %d at %g after %g", line, i, s.At, last)
			}
			last = s.At
			for _, m := range s.Sends {
				sends[m]++
				if tr.Messages[m].Sent != s.At || tr.Messages[m].From != s.Process {
					t.Errorf("%s: step %d sends %+v", line, i, tr.Messages[m])
				}
				if tr.CountedUntil == nil || s.At <= *tr.CountedUntil {
					sent[tr.Messages[m].Type]++
				}
			}
			if s.Message >= 0 && tr.Messages[s.Message].Ends != s.At {
				t.Errorf("%s: step %d at %g ends %+v", line, i, s.At, tr.Messages[s.Message])
			}
		}
		for i, m := range tr.Messages {
			if (sends[i] == 1) == m.Copy {
				t.Errorf("%s: message %d is sent %d times: %+v", line, i, sends[i], m)
			}
			if (m.Received != nil) && m.Lost != "" {
				t.Errorf("%s: message %d both arrives and is lost", line, i)
			}
		}
		var result struct {
			Messages sim.Messages `json:"messages"`
		}
		if err := json.Unmarshal(tr.Result, &result); err != nil || !reflect.DeepEqual(result.Messages.ByType, sent) {
			t.Errorf("%s: the steps send %v, the result counts %v (%v)", line, sent, result.Messages.ByType, err)
		}
	}
}

// TestRun_Trace_SurvivesJSON: what a browser reads is what was meant.
func TestRun_Trace_SurvivesJSON(t *testing.T) {
	for _, line := range lines() {
		tr := lineTrace(t, line)
		data, err := json.Marshal(tr)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if strings.Contains(string(data), `:null,"steps"`) {
			t.Errorf("%s: a list is null", line)
		}
		var again trace.Trace
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		second, _ := json.Marshal(again)
		if string(second) != string(data) {
			t.Errorf("%s: JSON changes when it is read and written", line)
		}
	}
}

// TestTrace_At_ShowsTheState goes through the slide in which P2 asks with 15 and P3 with 7.
func TestTrace_At_ShowsTheState(t *testing.T) {
	tr := lineTrace(t, "mutex --algorithm ricart-agrawala --n 3 --requester 2,3 --clock 2=14,3=6")
	value := func(k int, id sim.ID, name string) string {
		for _, v := range tr.At(k)[id].Variables {
			if v.Name == name {
				return v.Value
			}
		}
		return "not shown"
	}
	at := func(time float64) int {
		return slices.IndexFunc(append(tr.Steps, trace.Step{At: 1e9}), func(s trace.Step) bool { return s.At > time })
	}
	for _, c := range []struct {
		time       float64
		id         sim.ID
		name, want string
	}{{0, 2, "state", "WANTED"}, {0, 2, "own request", "(15,2)"}, {0, 3, "own request", "(7,3)"},
		{1, 3, "kept back", "[(15,2)]"}, {2, 3, "state", "HELD"}, {2, 2, "state", "WANTED"},
		{2, 1, "state", "RELEASED"}, {4, 2, "state", "HELD"}} {
		if got := value(at(c.time), c.id, c.name); got != c.want {
			t.Errorf("at %g %v has %s %s, want %s", c.time, c.id, c.name, got, c.want)
		}
	}
	if due := tr.At(at(2))[3].Timers["leave"]; due != 3 {
		t.Errorf("N3's stay ends at %g, want 3", due)
	}
	inside := 0
	for _, s := range tr.Spans {
		if s.What == trace.Inside {
			inside++
		}
	}
	if inside != 2 {
		t.Errorf("%d spans inside, want 2: %+v", inside, tr.Spans)
	}
}

func TestRun_Errors_NameTheWord(t *testing.T) {
	for line, want := range map[string]string{
		"":                    "no command",
		"dance":               `"dance" is unknown`,
		"election --tempo 3":  `"--tempo" is no option`,
		"election fast":       `"fast" is no option`,
		"election --n":        "--n: want N",
		"election --n x":      "--n x: want a whole number",
		"election --loss 2":   "--loss 2: want a probability",
		"mutex --clock 1=2":   "central has no clocks",
		"mutex --late x@1":    "--late",
		"election --rule mob": "want initiator or participant",
	} {
		if _, err := Run(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// TestPackages_NeedNoMachine: the simulator runs in a browser, where there are no files,
// no network and no processes.
func TestPackages_NeedNoMachine(t *testing.T) {
	for _, dir := range []string{"sim", "znodes", "problem", "race", "explore", "detector", "election", "mutex", "table", "trace", "chart", "play", "page"} {
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range tree.Imports {
				path, _ := strconv.Unquote(i.Path.Value)
				if path == "os" || path == "net" || path == "syscall" || strings.HasPrefix(path, "os/") || strings.HasPrefix(path, "net/") {
					t.Errorf("%s imports %s", file, path)
				}
			}
		}
	}
}

// TestRunWithin_Limit: who runs lines of strangers says how much.
func TestRunWithin_Limit(t *testing.T) {
	small := Limit{Processes: 8, Events: 100}
	for _, line := range []string{"election --n 9", "mutex --n 9", "problem --n 9", "detector --ids 1,2,3,4,5,6,7,8,9"} {
		_, err := RunWithin(small, strings.Fields(line))
		if err == nil || !strings.Contains(err.Error(), "9 processes: want 8 at most") {
			t.Errorf("%s: %v, want the limit of 8 processes", line, err)
		}
	}
	for _, line := range []string{"election --algorithm bully --n 8 --detector heartbeat",
		"mutex --n 8 --requests 100", "detector --length 1000", "problem --algorithm deadlock --n 8 --rounds 3"} {
		tr, err := RunWithin(small, strings.Fields(line))
		if err != nil || len(tr.Steps) == 0 || len(tr.Steps) > 120 {
			t.Errorf("%s: %d steps, %v", line, len(tr.Steps), err)
		}
	}
}

// FuzzRun: no line may panic, and what runs has a trace that can be encoded.
func FuzzRun(f *testing.F) {
	for _, line := range lines() {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		if len(words) > 20 || len(line) > 200 || len(words) == 0 {
			return // longer lines make longer runs, not other ones
		}
		small := append(slices.Clone(words), "--n", "4", "--ids", "3,1,4,2")
		switch words[0] {
		case "explore":
			small = append(small, "--states", "200")
		case "detector":
			small = append(small, "--length", "20", "--delay", "1")
		case "race":
			small = words
		default:
			small = append(small, "--max-time", "100", "--delay", "1")
		}
		tr, err := Run(small)
		if err != nil {
			return
		}
		if _, err := json.Marshal(tr); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	})
}
