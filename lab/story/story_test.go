package story_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/lab/page"
	"github.com/zk-lite/zk-lite/lab/story"
)

var update = flag.Bool("update", false, "rewrite the sheet for teachers")

func all(t *testing.T) []story.Story {
	t.Helper()
	stories, err := story.All()
	if err != nil {
		t.Fatal(err)
	}
	return stories
}

// TestStories_Run: each command runs within the page's bounds and says what the story has
// it say, each moment lies in its run, and each story has a question.
func TestStories_Run(t *testing.T) {
	stories := all(t)
	if len(stories) < 12 {
		t.Errorf("%d stories, want 12 or more", len(stories))
	}
	for _, s := range stories {
		questions, said := 0, 0
		for i, step := range s.Steps {
			tr, err := page.Run(strings.Fields(step.Command))
			if err != nil {
				t.Errorf("%s, step %d: %v", s.Name, i+1, err)
				continue
			}
			printed := strings.Join(tr.Words, "\n")
			for _, want := range step.Says {
				said++
				if !strings.Contains(printed, want) {
					t.Errorf("%s, step %d: %q is not in what the command prints:\n%s", s.Name, i+1, want, printed)
				}
			}
			if last := tr.Steps[len(tr.Steps)-1].At; step.At > max(last, 1) && step.At > ended(tr.Time, tr.CutOff) {
				t.Errorf("%s, step %d is at %g; the run ends at %g", s.Name, i+1, step.At, last)
			}
			if step.Question == "" {
				continue
			}
			if questions++; len(step.Choices) < 2 {
				t.Errorf("%s, step %d has %d answers to choose from", s.Name, i+1, len(step.Choices))
			}
		}
		if questions == 0 || said == 0 {
			t.Errorf("%s has %d questions, and %d words that its commands print", s.Name, questions, said)
		}
	}
}

func ended(times ...*float64) (end float64) {
	for _, t := range times {
		if t != nil {
			end = max(end, *t)
		}
	}
	return end
}

func TestParse_Errors_NameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "want a title",
		"tempo: 3":                    "line 1",
		"title: a\nslides: 1\nstep x": "line 3",
		"title: a\nslides: 1\ncommand: race\nstep 0\n? why":                      "step 1",
		"title: a\nslides: 1\ncommand: race\nstep 0\nx\n? why\n- no\n! y":        "one right one",
		"title: a\nslides: 1\ncommand: race\nstep 0\nx\n? why\n+ no\n+ yes\n! y": "line 8",
	} {
		if _, err := story.Parse("s", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestSheet_IsWhatTheStoriesSay: the sheet for teachers is made from the stories.
func TestSheet_IsWhatTheStoriesSay(t *testing.T) {
	const file = "../stories.md"
	var b strings.Builder
	story.Sheet(&b, all(t))
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != b.String() {
		t.Errorf("%s is not what the stories say (%v): run this test with -update", file, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("title: a\nslides: 1\ncommand: race\nsays: right\nstep 0\ntext\n? q\n! a\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := story.Parse("s", text)
		if err == nil && len(s.Steps) == 0 {
			t.Errorf("%q is a story without steps", text)
		}
	})
}
