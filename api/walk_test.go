package api_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

var updateWalk = flag.Bool("update-walk", false, "write the real output into docs/http*.md")

// TestWalk runs every command of docs/http.md, in order and in one shell, against an
// ensemble of three, and compares what it prints with what the document shows. Ids,
// times and secrets differ from run to run; they are replaced by numbers in the order
// of their first appearance, so that one which should be the same again must be.
func TestWalk(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	walkThrough(t, "../docs/http.md", 30, func() replacer { return newNormaliser() })
}

// replacer replaces what differs from run to run.
type replacer interface{ replace(text string) string }

// walkThrough runs a document that has at least the given number of commands. Its outputs and the printed ones each
// have a replacer.
func walkThrough(t *testing.T, file string, commands int, newReplacer func() replacer) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &walk{t: t, e: fresh(t, 3, patient)}
	w.parse(string(text))
	if len(w.commands) < commands {
		t.Fatalf("only %d commands found: is it still the format that is read here?", len(w.commands))
	}
	outputs := w.run()
	if *updateWalk {
		w.write(file, outputs)
		return
	}
	shown, real := newReplacer(), newReplacer()
	for i, c := range w.commands {
		want, got := shown.replace(c.output), real.replace(outputs[i])
		if got != want {
			t.Fatalf("line %d: $ %s\nprints (ids replaced)\n%s\nthe document shows\n%s\nreally:\n%s",
				c.line, c.text, got, want, outputs[i])
		}
	}
}

// walkCommand is a command of the document and what it prints.
type walkCommand struct {
	line         int // where its output begins, from 0
	text, output string
}

type walk struct {
	t        *testing.T
	e        *ensemble
	lines    []string
	commands []walkCommand
}

// parse finds the blocks ```console. In them a line "$ " begins a command, lines "> " continue it, and the others are
// its output.
func (w *walk) parse(text string) {
	w.lines = strings.Split(text, "\n")
	in := false
	var c *walkCommand
	for i, line := range w.lines {
		switch {
		case !in:
			in, c = line == "```console", nil
		case line == "```":
			in = false
		case strings.HasPrefix(line, "$ "):
			w.commands = append(w.commands, walkCommand{line: i + 1, text: line[2:]})
			c = &w.commands[len(w.commands)-1]
		case c != nil && c.output == "" && strings.HasPrefix(line, "> "):
			c.text += "\n" + line[2:]
			c.line = i + 1
		case c != nil:
			c.output += line + "\n"
		}
	}
}

// mark separates the commands' outputs.
const mark = "\x1e"

// run runs the commands and returns what they print. Between them it brings all
// servers up to date: what a follower shows right after a write at another server
// depends on how fast one types.
func (w *walk) run() []string {
	w.t.Helper()
	var script strings.Builder
	var syncs []string
	for _, url := range w.e.urls {
		syncs = append(syncs, url+"/v1/sync")
	}
	for _, c := range w.commands {
		fmt.Fprintf(&script, "%s\nprintf '%s'\n", c.text, mark)
		fmt.Fprintf(&script, "curl -s -X POST %s >/dev/null\n", strings.Join(syncs, " "))
	}
	// A reader sees a stream for a second. On a busy machine its events may need more; the next mark comes after five.
	text := strings.ReplaceAll(script.String(), "--max-time 1 ", "--max-time 4 ")
	for i, url := range w.e.urls {
		text = strings.ReplaceAll(text, fmt.Sprintf("localhost:%d", 8080+i), strings.TrimPrefix(url, "http://"))
	}
	cmd := exec.CommandContext(w.t.Context(), "bash", "-c", text)
	var out, fault bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &fault
	_ = cmd.Run() // its last command's; their outputs distinguish them
	got := out.String()
	for i, url := range w.e.urls {
		got = strings.ReplaceAll(got, strings.TrimPrefix(url, "http://"), fmt.Sprintf("localhost:%d", 8080+i))
	}
	outputs := strings.Split(strings.ReplaceAll(got, "\r\n", "\n"), mark)
	if len(outputs) != len(w.commands)+1 || fault.Len() > 0 {
		w.t.Fatalf("%d outputs of %d commands, and %s", len(outputs)-1, len(w.commands), fault.String())
	}
	for i, o := range outputs {
		if o != "" && !strings.HasSuffix(o, "\n") {
			outputs[i] += "\n"
		}
	}
	return outputs[:len(w.commands)]
}

// write puts the outputs into the document.
func (w *walk) write(file string, outputs []string) {
	var b strings.Builder
	at := 0
	for i, c := range w.commands {
		b.WriteString(strings.Join(w.lines[at:c.line], "\n") + "\n" + outputs[i])
		at = c.line + strings.Count(c.output, "\n")
	}
	b.WriteString(strings.Join(w.lines[at:], "\n"))
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// normaliser replaces ids, times and secrets.
type normaliser struct{ seen map[string]string }

func newNormaliser() *normaliser { return &normaliser{map[string]string{}} }

// volatile matches zxids and session ids, secrets, times in milliseconds, dates, terms, and the number of the leader.
var volatile = regexp.MustCompile(`0x[0-9a-f]{2,}(\.[0-9]+)?|\b[0-9a-f]{32}\b|\b1[0-9]{12}\b|` +
	`Date: [^\n]+|"term":[0-9]+|"leader":[1-3]|Zk-Leader: [1-3]|"role":"(leader|follower)"`)

func (n *normaliser) replace(text string) string {
	return volatile.ReplaceAllStringFunc(text, func(s string) string {
		if !strings.HasPrefix(s, "0x") && len(s) != 32 && len(s) != 13 {
			name, _, _ := strings.Cut(s, ":")
			return name // any will do
		}
		if n.seen[s] == "" {
			n.seen[s] = fmt.Sprintf("<%d>", len(n.seen)+1)
		}
		return n.seen[s]
	})
}
