package story

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Story is one run, or several that belong together, in steps.
type Story struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Slides string `json:"slides"`
	// Lectures are the numbers of those whose slides lead to the story.
	Lectures  []int  `json:"lectures"`
	Algorithm string `json:"algorithm"` // of the first command
	Steps     []Step `json:"steps"`
}

// Step is one idea, at one moment of a run.
type Step struct {
	Command  string   `json:"command"`
	At       float64  `json:"at"`
	Text     string   `json:"text"`
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Choices  []string `json:"choices"` // answers to choose from
	Right    int      `json:"right"`   // the place of the right one
	Says     []string `json:"-"`       // lines that the command prints
}

//go:embed stories
var files embed.FS

// All returns the stories in their order.
func All() ([]Story, error) {
	names, err := fs.Glob(files, "stories/*.txt")
	if err != nil {
		return nil, err
	}
	all, err := Slides()
	if err != nil {
		return nil, err
	}
	var stories []Story
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		s, err := Parse(strings.TrimSuffix(path.Base(name), ".txt"), string(data))
		if err != nil {
			return nil, err
		}
		for n := range len(Lectures()) {
			if slices.ContainsFunc(all, func(d Slide) bool { return d.leads(n+1, s.Name) }) {
				s.Lectures = append(s.Lectures, n+1)
			}
		}
		stories = append(stories, s)
	}
	return stories, nil
}

// Parse reads a story in the form that the package comment shows.
func Parse(name, text string) (Story, error) {
	s := Story{Name: name}
	var command string
	var says []string
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := s.line(strings.TrimSpace(line), &command, &says); err != nil {
			return Story{}, fmt.Errorf("story %s, line %d: %w", name, number, err)
		}
	}
	if s.Title == "" || s.Slides == "" || len(s.Steps) == 0 {
		return Story{}, fmt.Errorf("story %s: want a title, slides and steps", name)
	}
	s.Algorithm = s.algorithm()
	for i, step := range s.Steps {
		if len(step.Choices) > 0 && (step.Question == "" || step.Right < 0) || len(step.Choices) > 9 {
			return Story{}, fmt.Errorf("story %s, step %d: want at most nine choices of a question, and one right one",
				name, i+1)
		}
		if step.Command == "" || step.Text == "" || (step.Question == "") != (step.Answer == "") {
			return Story{}, fmt.Errorf("story %s, step %d: want a command, a text, and an answer to each question",
				name, i+1)
		}
	}
	return s, nil
}

// algorithm is that of the first command; a detector has no name.
func (s *Story) algorithm() string {
	words := strings.Fields(s.Steps[0].Command)
	if at := slices.Index(words, "--algorithm"); at >= 0 && at+1 < len(words) {
		return words[at+1]
	}
	return strings.Join(words[:min(len(words), 1)], "")
}

func (s *Story) line(line string, command *string, says *[]string) error {
	key, value, _ := strings.Cut(line, " ")
	var last *Step
	if len(s.Steps) > 0 {
		last = &s.Steps[len(s.Steps)-1]
	}
	switch {
	case line == "":
	case key == "step":
		at, err := strconv.ParseFloat(value, 64)
		if err != nil || at < 0 {
			return fmt.Errorf("%q: want step TIME, such as step 2.5", line)
		}
		s.Steps = append(s.Steps, Step{Command: *command, At: at, Says: *says, Choices: []string{}, Right: -1})
	case key == "command:":
		*command, *says = value, nil
		if last != nil {
			last.Command, last.Says = value, nil
		}
	case key == "says:":
		*says = append(*says, value)
		if last != nil {
			last.Says = *says
		}
	case last == nil && key == "title:":
		s.Title = value
	case last == nil && key == "slides:":
		s.Slides = value
	case last == nil:
		return fmt.Errorf("%q: want title:, slides:, command:, says: or step", line)
	case key == "?":
		last.Question = join(last.Question, value)
	case key == "+" && last.Right >= 0:
		return fmt.Errorf("%q: there is a right choice already", line)
	case key == "+" || key == "-":
		if key == "+" {
			last.Right = len(last.Choices)
		}
		last.Choices = append(last.Choices, value)
	case key == "!":
		last.Answer = join(last.Answer, value)
	default:
		last.Text = join(last.Text, line)
	}
	return nil
}

func join(text, more string) string {
	if text == "" {
		return more
	}
	return text + " " + more
}
