package cli

import (
	"maps"
	"testing"
)

// What a follower knows as the leader's part is divided by what the leader of that term says.
func TestSlow_Divide(t *testing.T) {
	entry := slowRequest{Index: 7, Term: 2, StagesMS: map[string]float64{"propose": 10, "disk": 50, "majority": 20}}
	for name, c := range map[string]struct {
		leaders []slowPage
		index   uint64
		stages  map[string]float64
		cause   string
	}{
		"nobody has led": {[]slowPage{{}}, 7, map[string]float64{"leader": 100}, "leader"},
		"it is listed": {[]slowPage{{}, {Items: []slowRequest{entry}}}, 7,
			map[string]float64{"propose": 10, "disk": 50, "majority": 20, "network": 20}, "disk"},
		"the leader does not list it": {[]slowPage{{LeadsTerm: 2, Items: []slowRequest{entry}}}, 8,
			map[string]float64{"network": 100}, "network"},
		"the leader of another term": {[]slowPage{{LeadsTerm: 3}}, 8, map[string]float64{"leader": 100}, "leader"},
	} {
		r := slowRequest{Index: c.index, Term: 2, Cause: "leader", StagesMS: map[string]float64{"leader": 100}}
		if r.divide(c.leaders); !maps.Equal(r.StagesMS, c.stages) || r.Cause != c.cause {
			t.Errorf("%s: %v %s, want %v %s", name, r.StagesMS, r.Cause, c.stages, c.cause)
		}
	}
	own := slowRequest{Term: 3, Cause: "queue", StagesMS: map[string]float64{"queue": 9}}
	if own.divide([]slowPage{{LeadsTerm: 3}}); len(own.StagesMS) != 1 {
		t.Errorf("what was not the leader's is divided: %v", own.StagesMS)
	}
}
