package story

import (
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Lectures are the titles of the lectures, which are numbered from 1.
func Lectures() []string {
	return []string{"Bully (Lecture D)", "Elections (chapter 15)", "Coordination and agreement",
		"Leader election in rings, and ZooKeeper", "Leader election (COMP750)"}
}

// Slide is one slide of a lecture, or some that belong together.
type Slide struct {
	Lectures []int    `json:"lectures"`
	Title    string   `json:"title"`
	Stories  []string `json:"stories"`
	Commands []string `json:"commands"` // whose runs the lab has
}

// leads tells whether the slide is of a lecture and leads to a story.
func (s Slide) leads(lecture int, story string) bool {
	return slices.Contains(s.Lectures, lecture) && slices.Contains(s.Stories, story)
}

//go:embed slides.md
var slidesPage string

var (
	numbers = regexp.MustCompile(`^ ?(?:[1-5](?:, )?)+`)
	quoted  = regexp.MustCompile("`([^`]+)`")
)

// lectures are the numbers at the beginning of a text: "1, 2, 4".
func lectures(text string) (list []int, rest string) {
	found := numbers.FindString(text)
	for _, digit := range found {
		if n, err := strconv.Atoi(string(digit)); err == nil {
			list = append(list, n)
		}
	}
	return list, strings.TrimSpace(text[len(found):])
}

// Slides are the rows of the table of all slides, in its order.
func Slides() ([]Slide, error) {
	var list []Slide
	short := strings.NewReplacer("RING", "--ids 3,32,5,80,6,12", "SIX", "--ids 3,5,6,12,32,80")
	for line := range strings.Lines(slidesPage) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.ContainsAny(cells[1], "12345") {
			continue
		}
		s := Slide{Stories: []string{}, Commands: []string{}}
		s.Lectures, s.Title = lectures(cells[1])
		if len(s.Lectures) == 0 || s.Title == "" {
			return nil, fmt.Errorf("slides.md: %q: want the numbers of lectures and a title", cells[1])
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			s.Stories = append(s.Stories, m[1])
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[3], -1) {
			if !strings.HasPrefix(m[1], "zk-lite ") {
				s.Commands = append(s.Commands, short.Replace(m[1]))
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// List writes the stories of each lecture, with their algorithms and lengths.
func List(w io.Writer, stories []Story) {
	for i, title := range Lectures() {
		fmt.Fprintf(w, "Lecture %d: %s\n", i+1, title)
		for _, s := range stories {
			if slices.Contains(s.Lectures, i+1) {
				fmt.Fprintf(w, "  %-20s %-18s %2d steps  %s\n", s.Name, s.Algorithm, len(s.Steps), s.Title)
			}
		}
	}
}

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
