package page

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/zk-lite/zk-lite/lab/play"
	"github.com/zk-lite/zk-lite/lab/story"
	"github.com/zk-lite/zk-lite/lab/trace"
)

// The bounds of a run that a page asks for: it takes two seconds at most. For larger runs, use
// the command line.
const (
	MaxProcesses = 64
	MaxEvents    = 20_000
	MaxWords     = 200
	MaxBytes     = 8 << 10 // of the words together
)

// Policy is the Content-Security-Policy of the page: everything from its own origin.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed web
var web embed.FS

// Files are those of the page, with index.html at the root.
func Files() fs.FS {
	files, err := fs.Sub(web, "web")
	if err != nil {
		panic(fmt.Sprintf("page: invariant broken: %v", err)) // the folder is embedded above
	}
	return files
}

// searches is the command that makes many runs of one line, for minutes: only the command line
// has it.
const searches = "explore"

// Run runs the command given by words within the page's bounds.
func Run(words []string) (trace.Trace, error) {
	if len(words) > 0 && words[0] == searches {
		return trace.Trace{}, fmt.Errorf("%s goes through very many runs: ask for it on the command line", searches)
	}
	size := 0
	for _, w := range words {
		size += len(w)
	}
	if len(words) > MaxWords || size > MaxBytes {
		return trace.Trace{}, fmt.Errorf("%d words of %d bytes: want at most %d of %d",
			len(words), size, MaxWords, MaxBytes)
	}
	return play.RunWithin(play.Limit{Processes: MaxProcesses, Events: MaxEvents}, words)
}

// Command describes a command to the page.
type Command struct {
	Name    string   `json:"name"`
	Short   string   `json:"short"`
	Options []Option `json:"options"`
}

// Option describes an option of a command to the page.
type Option struct {
	Name    string   `json:"name"`
	Value   string   `json:"value"` // the value's form; empty for a switch
	Default string   `json:"default"`
	Help    string   `json:"help"`
	Choices []string `json:"choices"`
}

// Commands describes all commands whose runs can be drawn.
func Commands() []Command {
	commands := []Command{}
	for _, c := range play.Commands() {
		if c.Name == searches {
			continue
		}
		d := Command{Name: c.Name, Short: c.Short, Options: []Option{}}
		for _, o := range c.Options {
			d.Options = append(d.Options, Option{Name: o.Name, Value: o.Value, Default: o.Default, Help: o.Help,
				Choices: append([]string{}, o.Choices...)})
		}
		commands = append(commands, d)
	}
	return commands
}

// experiments describes the command that runs on real servers, which only some pages have.
func experiments() Command {
	const short = "Do something to the candidate that leads, on running servers"
	return Command{Name: "ensemble", Short: short, Options: []Option{
		{Name: "fault", Value: "KIND", Default: "kill", Choices: []string{"kill", "cut", "expire"},
			Help: "what the candidate that leads suffers: its process ends, its network breaks, or its session ends"},
		{Name: "n", Value: "N", Default: "4", Help: "number of candidates, 2 to 16", Choices: []string{}},
		{Name: "herd", Help: "let everybody watch the leader", Choices: []string{}},
	}}
}

// Catalogue is the answer to the page's first request. If real is set, there are servers to run
// experiments on.
func Catalogue(real bool) ([]byte, error) {
	commands := Commands()
	if real {
		commands = append(commands, experiments())
	}
	stories, err := story.All()
	if err != nil {
		return nil, err
	}
	slides, err := story.Slides()
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Commands []Command     `json:"commands"`
		Stories  []story.Story `json:"stories"`
		Lectures []string      `json:"lectures"`
		Slides   []story.Slide `json:"slides"`
	}{commands, stories, story.Lectures(), slides})
}
