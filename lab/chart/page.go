package chart

import (
	"encoding/json"
	"fmt"
	"html"
	"io"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// pageStep is one step as the page's script sees it.
type pageStep struct {
	Time   string `json:"t"`
	Text   string `json:"text"`
	Who    string `json:"who"`
	Status string `json:"status"`
}

// HTML writes one page that draws the run and steps through it. Everything is
// inline: the page works from a file and fetches nothing.
func (r Run) HTML(w io.Writer) error {
	steps := r.drawn()
	shown := make([]pageStep, len(steps))
	for i, s := range steps {
		text := s.text
		if s.to != sim.None {
			text = fmt.Sprintf("%v to %v: %s", s.from, s.to, s.text)
		}
		shown[i] = pageStep{sim.FormatTime(s.at), text, s.from.String(), s.status}
	}
	// encoding/json escapes <, > and &, so the data cannot end the script.
	data, err := json.Marshal(shown)
	if err != nil {
		return fmt.Errorf("encoding the steps of the page: %w", err)
	}
	var names []string
	for _, id := range r.columns() {
		names = append(names, id.String())
	}
	columns, err := json.Marshal(names)
	if err != nil {
		return fmt.Errorf("encoding the columns of the page: %w", err)
	}
	title := html.EscapeString(r.Title)
	_, err = fmt.Fprintf(w, pageForm, title, title, len(steps), r.svg(steps), data, columns)
	return err
}

// pageForm takes the title twice, the number of steps, the picture, the steps
// and the columns.
const pageForm = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title>
<style>
body { font-family: sans-serif; margin: 0 }
header { position: sticky; top: 0; background: #f4f4f8; padding: 8px 12px;
  border-bottom: 1px solid #ccc }
h1 { font-size: 16px; margin: 0 0 6px }
button { font-size: 15px; min-width: 40px }
#now { font-family: monospace; margin: 6px 0 }
#state span { display: inline-block; border: 1px solid #bbb; border-radius: 4px;
  padding: 1px 6px; margin: 1px; font-size: 12px }
g.step { display: none } g.step.past { display: inline; opacity: .45 }
g.step.now { display: inline; opacity: 1 }
</style></head><body>
<header><h1>%s</h1>
<button id="first" title="Home">|&lt;</button> <button id="back" title="Left">&lt;</button>
<button id="play" title="Space">play</button> <button id="next" title="Right">&gt;</button>
<button id="last" title="End">&gt;|</button>
<input id="at" type="range" min="0" max="%d" value="0" style="width:40%%">
<div id="now"></div><div id="state"></div></header>
%s
<script>
"use strict";
const steps = %s, columns = %s;
const drawn = document.querySelectorAll("g.step"), range = document.getElementById("at");
let at = 0, timer = null;
function show(k) {
  at = Math.max(0, Math.min(steps.length, k));
  range.value = at;
  const status = {};
  drawn.forEach((g, i) => {
    g.setAttribute("class", "step" + (i < at - 1 ? " past" : i === at - 1 ? " now" : ""));
  });
  for (const s of steps.slice(0, at)) if (s.status) status[s.who] = s.status;
  const now = document.getElementById("now"), state = document.getElementById("state");
  now.textContent = at ? at + "/" + steps.length + "  t=" + steps[at - 1].t + "  " +
    steps[at - 1].text : "before the run; press > or Space";
  state.replaceChildren(...columns.map(c => {
    const box = document.createElement("span");
    box.textContent = c + ": " + (status[c] || "-");
    return box;
  }));
  if (at) drawn[at - 1].scrollIntoView({block: "nearest"});
}
function stop() { clearInterval(timer); timer = null;
  document.getElementById("play").textContent = "play"; }
function play() {
  if (timer) return stop();
  document.getElementById("play").textContent = "stop";
  timer = setInterval(() => at < steps.length ? show(at + 1) : stop(), 500);
}
const on = (id, f) => document.getElementById(id).addEventListener("click", f);
on("first", () => show(0)); on("back", () => show(at - 1)); on("play", play);
on("next", () => show(at + 1)); on("last", () => show(steps.length));
range.addEventListener("input", () => show(Number(range.value)));
document.addEventListener("keydown", e => {
  const f = {Home: () => show(0), ArrowLeft: () => show(at - 1), " ": play,
    ArrowRight: () => show(at + 1), End: () => show(steps.length)}[e.key];
  if (f) { e.preventDefault(); f(); }
});
show(0);
</script></body></html>
`
