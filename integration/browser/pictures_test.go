package browser

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "rewrite the pictures in docs")

// TestPictures_Docs takes the pictures of the page that the documentation shows. They are
// not compared: fonts differ between machines. It looks whether each shows something.
func TestPictures_Docs(t *testing.T) {
	const twoLeaders = "election --algorithm bully --ids 3,5,6,12,32,80 --initiator 32 --slow 80-32@9"
	for _, c := range []struct {
		file, theme, line string
		width, height     int64
		at                float64
	}{
		{"lab-bully-light.png", "light", bully, 1120, 880, 2.5},
		{"lab-bully-dark.png", "dark", bully, 1120, 880, 2.5},
		{"lab-two-leaders-dark.png", "dark", twoLeaders, 1120, 880, 9.5},
		{"lab-story-light.png", "light", "", 1120, 880, 0},
		{"lab-narrow-light.png", "light", bully, 360, 1000, 2.5},
	} {
		link := fragment(c.line, c.at)
		if c.line == "" {
			link = "s=13-ricart-agrawala:1&" + fragment("mutex --algorithm ricart-agrawala --n 3 --requester 2,3 --clock 2=14,3=6", 1)
		}
		p := open(t, int(c.width), link)
		p.theme(c.theme)
		p.do(chromedp.EmulateViewport(c.width, c.height))
		if c.width < 800 {
			p.do(chromedp.Evaluate(`document.querySelector("#player").scrollIntoView()`, nil))
		}
		p.do(chromedp.Evaluate(`new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))), 0`, nil))
		var data []byte
		p.do(chromedp.CaptureScreenshot(&data))
		wantColours(t, c.file, data)
		if *update {
			if err := os.WriteFile(filepath.Join("../../docs/images", c.file), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
