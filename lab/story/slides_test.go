package story_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/lab/page"
	"github.com/zk-lite/zk-lite/lab/story"
)

// TestSlides_EachHasAStory: a slide that has a command has a story, and a story a lecture.
func TestSlides_EachHasAStory(t *testing.T) {
	slides, err := story.Slides()
	if err != nil || len(slides) < 35 {
		t.Fatalf("%d slides, %v: want those of five lectures", len(slides), err)
	}
	for _, s := range slides {
		if len(s.Commands) > 0 && len(s.Stories) == 0 {
			t.Errorf("%s has the command %q, and no story", s.Title, s.Commands[0])
		}
	}
	for _, s := range all(t) {
		if len(s.Lectures) == 0 || s.Algorithm == "" {
			t.Errorf("%s: lectures %v, algorithm %q", s.Name, s.Lectures, s.Algorithm)
		}
	}
}

// TestSlides_StoriesAndCommandsExist: the map of the slides names stories that there are,
// each of them, and commands that run.
func TestSlides_StoriesAndCommandsExist(t *testing.T) {
	data, err := os.ReadFile("slides.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("RING", "--ids 3,32,5,80,6,12", "SIX", "--ids 3,5,6,12,32,80").Replace(string(data))
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([0-9]{2}-[a-z-]+)`").FindAllStringSubmatch(text, -1) {
		named[m[1]] = true
	}
	for _, s := range all(t) {
		if !named[s.Name] {
			t.Errorf("no slide leads to story %s", s.Name)
		}
		delete(named, s.Name)
	}
	for name := range named {
		t.Errorf("the map names story %s, which does not exist", name)
	}
	failures, err := os.ReadFile("../testdata/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| [0-9]+ \\|.*\\| `([0-9]{2}-[a-z-]+)` \\|$")
	told := row.FindAllStringSubmatch(string(failures), -1)
	if len(told) != 30 {
		t.Errorf("%d of the slides' 30 failures have a story", len(told))
	}
	for _, m := range told {
		if !strings.Contains(text, m[1]) {
			t.Errorf("a failure names story %s, which does not exist", m[1])
		}
	}
	runs := 0
	for _, m := range regexp.MustCompile("`((?:election|mutex|problem|race) [^`]*)`").FindAllStringSubmatch(text, -1) {
		runs++
		if _, err := page.Run(strings.Fields(m[1])); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	if runs < 30 {
		t.Errorf("%d commands in the map", runs)
	}
}
