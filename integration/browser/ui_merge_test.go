package browser

import (
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// module evaluates an expression of what a module of the page exports, as m.
func (p *tab) module(name, expression string) (text string) {
	p.t.Helper()
	await := func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }
	p.do(chromedp.Evaluate(`import("./`+name+`").then((m) => `+expression+`)`, &text, await))
	return text
}

// TestUI_Merge: what several servers know of one session, or of one request, is one row.
func TestUI_Merge(t *testing.T) {
	p := uiOf(t, "tree")
	const at = `at: "2026-11-24T12:00:00Z", session: "0x1", server: 2`
	for _, lists := range []string{
		`[{` + at + `, cause: "elsewhere", heard: "h", heard_by: 2}], [{` + at + `, cause: "disconnected", watches: 3}]`,
		`[{` + at + `, cause: "disconnected", watches: 3}], [{` + at + `, cause: "elsewhere", heard: "h", heard_by: 2}], []`,
	} {
		got := p.module("expired.js", `m.merge([`+lists+`]).map((x) => [x.cause, x.watches, x.heard, x.heard_by].join()).join(";")`)
		if got != "disconnected,3,h,2" {
			t.Errorf("%s: merged to %s, want disconnected,3,h,2", lists, got)
		}
	}
	got := p.module("expired.js", `m.merge([[{`+at+`, cause: "server", heard: "h"}, {at: "2026-11-24T12:00:01Z", session: "0x2", cause: "silent"}],
		[{`+at+`, cause: "silent", watches: 1}]]).map((x) => [x.session, x.cause, x.watches].join()).join(";")`)
	if got != "0x2,silent,;0x1,server,1" {
		t.Errorf("merged: %s, want 0x2 before 0x1, which the server ended", got)
	}
	const request = `{index: 7, term: 2, cause: "leader", stages_ms: {queue: 1, leader: 10}}`
	for pages, want := range map[string]string{
		`[]`:                           `leader {"queue":1,"leader":10}`,
		`[{items: [], leads_term: 2}]`: `network {"queue":1,"network":10}`,
		`[{error: {}}, {items: [{index: 7, term: 2, stages_ms: {propose: 1, disk: 6, majority: 1}}]}]`: `disk {"queue":1,"propose":1,"disk":6,"majority":1,"network":2}`,
		`[{items: [{index: 7, term: 1, stages_ms: {propose: 1, disk: 6, majority: 1}}]}]`:              `leader {"queue":1,"leader":10}`,
	} {
		if got := p.module("slow.js", `((r) => r.cause + " " + JSON.stringify(r.stages_ms))(m.divide(`+request+`, `+pages+`))`); got != want {
			t.Errorf("%s: %s, want %s", pages, got, want)
		}
	}
}
