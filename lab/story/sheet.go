package story

import (
	"fmt"
	"io"
	"strings"
)

// Sheet writes the sheet for a teacher: questions, answers and commands of all stories.
func Sheet(w io.Writer, stories []Story) {
	fmt.Fprint(w, "# Stories: a sheet for teachers\n\n"+
		"Written by `go test ./lab/story -update`. Each story is on the page of `zk-lite lab serve`; each\n"+
		"command runs in a terminal, too. Let the class answer before you step on.\n")
	for _, s := range stories {
		fmt.Fprintf(w, "\n## %s\n\nStory `%s`. Slides: %s.\n", s.Title, s.Name, s.Slides)
		command := ""
		for _, step := range s.Steps {
			if step.Command != command {
				command = step.Command
				fmt.Fprintf(w, "\n    zk-lite lab %s\n\n", command)
			}
			if step.Question != "" {
				fmt.Fprintf(w, "%s\n", wrap(fmt.Sprintf("- At %g: %s", step.At, step.Question)))
				fmt.Fprintf(w, "%s\n", wrap("  **"+step.Answer+"**"))
			}
		}
	}
}

// wrap breaks a text into lines of a page; all but the first are indented as a list's are.
func wrap(text string) string {
	const widest = 118
	lines := []string{}
	for len(text) > widest {
		at := strings.LastIndexByte(text[:widest], ' ')
		if at <= 2 {
			break
		}
		lines, text = append(lines, text[:at]), "  "+text[at+1:]
	}
	return strings.Join(append(lines, text), "\n")
}
