package cli

import (
	"maps"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/api/body"
)

// What a follower knows as the leader's part is divided by what the leader of that term says.
func TestSlow_Divide(t *testing.T) {
	entry := body.SlowEntry{Index: 7, Term: 2, StagesMS: map[string]float64{"propose": 10, "disk": 50, "majority": 20}}
	for name, c := range map[string]struct {
		leaders []body.Newest[body.SlowEntry]
		index   uint64
		stages  map[string]float64
		cause   string
	}{
		"nobody has led": {[]body.Newest[body.SlowEntry]{{}}, 7, map[string]float64{"leader": 100}, "leader"},
		"it is listed": {[]body.Newest[body.SlowEntry]{{}, {Items: []body.SlowEntry{entry}}}, 7,
			map[string]float64{"propose": 10, "disk": 50, "majority": 20, "network": 20}, "disk"},
		"the leader does not list it": {[]body.Newest[body.SlowEntry]{{LeadsTerm: 2, Items: []body.SlowEntry{entry}}}, 8,
			map[string]float64{"network": 100}, "network"},
		"the leader of another term": {[]body.Newest[body.SlowEntry]{{LeadsTerm: 3}}, 8, map[string]float64{"leader": 100}, "leader"},
	} {
		r := body.SlowRequest{Index: c.index, Term: 2, Cause: "leader", StagesMS: map[string]float64{"leader": 100}}
		if divide(&r, c.leaders); !maps.Equal(r.StagesMS, c.stages) || r.Cause != c.cause {
			t.Errorf("%s: %v %s, want %v %s", name, r.StagesMS, r.Cause, c.stages, c.cause)
		}
	}
	own := body.SlowRequest{Term: 3, Cause: "queue", StagesMS: map[string]float64{"queue": 9}}
	if divide(&own, []body.Newest[body.SlowEntry]{{LeadsTerm: 3}}); len(own.StagesMS) != 1 {
		t.Errorf("what was not the leader's is divided: %v", own.StagesMS)
	}
}

// Of two servers' causes the one counts that knows more, in whatever order they answer.
func TestExpired_Merge(t *testing.T) {
	for _, c := range [][3]string{
		{"elsewhere", "disconnected", "disconnected"},
		{"server", "disconnected", "server"},
		{"elsewhere", "elsewhere", "elsewhere"},
		{"silent", "elsewhere", "silent"},
	} {
		for i := range 2 {
			x, o := expiredSession{ExpiredSession: body.ExpiredSession{Cause: c[i]}}, body.ExpiredSession{Cause: c[1-i]}
			if x.merge(&o); x.Cause != c[2] {
				t.Errorf("%s and %s: %s", c[i], c[1-i], x.Cause)
			}
		}
	}
}

// Of the ephemerals that went with it the first are named.
func TestExpired_Known_NamesEphemerals(t *testing.T) {
	for _, c := range []struct {
		ephemerals int
		want       []string
	}{{0, nil}, {2, []string{"took /a /b"}}, {5, []string{"took /a /b and 3 more"}}} {
		var x expiredSession
		x.Ephemerals, x.Paths = c.ephemerals, []string{"/a", "/b"}[:min(c.ephemerals, 2)]
		if got := x.known(); !slices.Equal(got, c.want) {
			t.Errorf("%d: %q, want %q", c.ephemerals, got, c.want)
		}
	}
}
