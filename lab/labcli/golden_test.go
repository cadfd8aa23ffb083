package labcli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/lab/table"
)

var update = flag.Bool("update", false,
	"rewrite golden scripts, the pages' examples and the plots")

// output runs one command line, without the leading program name.
func output(t *testing.T, line string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := Command(Options{})
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(split(line))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// split cuts a command line at spaces; single quotes keep a word whole.
func split(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// TestGolden_Scripts runs the scripts in testdata: lines with # tell the story,
// a line with $ is a command, and what follows is its output. An error is part of
// the output, after "error: ".
func TestGolden_Scripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts in testdata, %v: want 10 or more", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s differs; got:\n%s", file, got)
			}
		})
	}
}

func replay(t *testing.T, script string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(script) {
		command, isCommand := strings.CutPrefix(line, "$ zk-lite lab ")
		if isCommand {
			b.WriteString(line)
			out, err := output(t, strings.TrimSpace(command))
			b.WriteString(out)
			if err != nil {
				b.WriteString("error: " + err.Error() + "\n")
			}
			b.WriteString("\n")
		} else if strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestPages_Examples runs every example of the pages in lab/testdata: a block that opens
// with ```console and whose first line is a command must show what it prints.
func TestPages_Examples(t *testing.T) {
	pages, err := filepath.Glob("../testdata/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../lesson.md")
	examples := 0
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(data), "```console\n$ zk-lite lab ")
		for i := 1; i < len(parts); i++ {
			examples++
			parts[i] = example(t, parts[i])
		}
		if *update {
			if err := os.WriteFile(page, []byte(strings.Join(parts, "```console\n$ zk-lite lab ")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if examples < 16 {
		t.Errorf("%d examples: want one for each algorithm", examples)
	}
}

// example runs one, and returns it and the text behind it with what it prints.
func example(t *testing.T, text string) string {
	t.Helper()
	command, rest, _ := strings.Cut(text, "\n")
	shown, after, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatalf("the block of %q does not end", command)
	}
	out, err := output(t, command)
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
	if out != shown && !*update {
		t.Errorf("%s prints\n%s\nthe page shows\n%s", command, out, shown)
	}
	return command + "\n" + out + "```\n" + after
}

// TestPages_Plots draws the plots of lab/testdata from runs and compares them.
func TestPages_Plots(t *testing.T) {
	tier.Seconds(t)
	rows, err := table.Make(t.Context(), []int{4, 8, 16, 32, 64, 128, 256}, 1)
	if err != nil {
		t.Fatal(err)
	}
	plots := append(table.Plots(rows), table.NamedPlot{File: "../page/web/throughput.svg", Plot: table.Throughput()})
	for _, p := range plots {
		for _, s := range p.Plot.Series {
			if want := map[bool]int{false: 7, true: 4}[p.Plot.Linear]; len(s.Points) != want && p.Plot.X == "N" {
				t.Errorf("%s: line %q has %d points, want %d", p.File, s.Name, len(s.Points), want)
			}
		}
		var b bytes.Buffer
		if err := p.Plot.SVG(&b); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("../testdata", p.File)
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(want, b.Bytes()) {
			t.Errorf("%s is not what the runs give (%v); run the test with -update", file, err)
		}
	}
}
