package labcli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPages_Commands runs every command that stands in a table of these pages: `election ...`, or with
// the abbreviations that the page explains.
func TestPages_Commands(t *testing.T) {
	quoted := regexp.MustCompile("`([^`]+)`")
	first := regexp.MustCompile(`^(election|mutex|problem|race|explore|detector|table|scenario) --`)
	abbreviations := strings.NewReplacer("SIX ", "election --ids 3,5,6,12,32,80 ",
		"RING,6,12 ", "election --algorithm ring --ids 3,32,5,80,6,12 --initiator 3,6,12 ", `\|`, "|")
	ran := 0
	for page, ring := range map[string]string{"../testdata/failures.md": "--initiator 3 ", "../testdata/slides.md": ""} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				command := abbreviations.Replace(m[1])
				if rest, ok := strings.CutPrefix(command, "RING "); ok {
					command = "election --algorithm ring --ids 3,32,5,80,6,12 " + ring + rest
				}
				if !first.MatchString(command) {
					continue
				}
				ran++
				if _, err := output(t, strings.Replace(command, "hs.svg", os.DevNull, 1)); err != nil {
					t.Errorf("%s: command %s: %v", page, command, err)
				}
			}
		}
	}
	if ran < 60 {
		t.Errorf("%d commands were run, want those of both tables", ran)
	}
}
