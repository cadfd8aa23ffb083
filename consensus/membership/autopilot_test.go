package membership

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// What the leader plans, of virtual moments.
func TestAutopilot_Plan(t *testing.T) {
	const stable, after = 10 * time.Second, time.Hour
	settings := Autopilot{StableTime: stable, RemoveAfter: after, MinVoters: 3}
	begun := time.Unix(1e9, 0)
	at := func(d time.Duration) time.Time { return begun.Add(d) }
	up := sight{votes: true, open: true}
	down := sight{votes: true, behind: "it is not connected"}
	joins, behind := sight{joins: true, open: true}, sight{joins: true, open: true, behind: "it is catching up"}
	type moment struct {
		after time.Duration // since the leadership began
		seen  map[state.ServerID]sight
		want  map[state.ServerID]plan
	}
	for name, moments := range map[string][]moment{
		"a vote after the stable time": {
			{0, map[state.ServerID]sight{2: up, 4: behind}, map[state.ServerID]plan{
				4: {action: ActionPromote, waits: "it is catching up"}}},
			{3, map[state.ServerID]sight{2: up, 4: joins}, map[state.ServerID]plan{4: {ActionPromote, at(3 + stable), ""}}},
		},
		"a break begins it anew": {
			{1, map[state.ServerID]sight{4: joins}, map[state.ServerID]plan{4: {ActionPromote, at(1 + stable), ""}}},
			{5, map[state.ServerID]sight{4: joins}, map[state.ServerID]plan{4: {ActionPromote, at(1 + stable), ""}}},
			{6, map[state.ServerID]sight{4: {joins: true, behind: "it is not connected"}},
				map[state.ServerID]plan{4: {ActionRemove, at(5 + after), ""}}},
			{7, map[state.ServerID]sight{4: joins}, map[state.ServerID]plan{4: {ActionPromote, at(7 + stable), ""}}},
			{8, map[state.ServerID]sight{}, map[state.ServerID]plan{}}, // it was removed, and added again
			{9, map[state.ServerID]sight{4: joins}, map[state.ServerID]plan{4: {ActionPromote, at(9 + stable), ""}}},
		},
		"an absence counts since this leader leads, or since the end of the connection": {
			{0, map[state.ServerID]sight{2: up, 3: up, 4: down}, map[state.ServerID]plan{4: {ActionRemove, at(after), ""}}},
			{8, map[state.ServerID]sight{2: up, 3: up, 4: up}, map[state.ServerID]plan{}},
			{9, map[state.ServerID]sight{2: up, 3: up, 4: down}, map[state.ServerID]plan{4: {ActionRemove, at(8 + after), ""}}},
		},
		"not below the floor": {
			{0, map[state.ServerID]sight{2: up, 3: down}, map[state.ServerID]plan{
				3: {ActionRemove, at(after), "2 voters would be left, and autopilot.minVoters is 3"}}},
		},
		"not without a majority": {
			{0, map[state.ServerID]sight{2: up, 3: down, 4: down, 5: down}, map[state.ServerID]plan{
				3: {ActionRemove, at(after), "of the 4 voters that would be left 2 are connected: no majority"},
				4: {ActionRemove, at(after), "of the 4 voters that would be left 2 are connected: no majority"},
				5: {ActionRemove, at(after), "of the 4 voters that would be left 2 are connected: no majority"}}},
		},
		"an observer has no floor, and wants no vote": {
			{0, map[state.ServerID]sight{2: up, 3: {}, 4: {open: true}}, map[state.ServerID]plan{3: {ActionRemove, at(after), ""}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAutopilot(settings)
			for _, m := range moments {
				got := a.plan(at(m.after), m.seen)
				for id, p := range got {
					if p.waits != "" && p.action == ActionPromote {
						p.due = m.want[id].due // without a meaning
					}
					if p != m.want[id] {
						t.Errorf("after %v, server %d: %+v, want %+v", m.after, id, p, m.want[id])
					}
				}
				if len(got) != len(m.want) {
					t.Errorf("after %v: %+v, want %+v", m.after, got, m.want)
				}
			}
		})
	}
	a := newAutopilot(Autopilot{}) // turned off: a vote at once, and no removals
	got := a.plan(at(2*after), map[state.ServerID]sight{2: up, 3: down, 4: joins})
	if len(got) != 1 || got[4] != (plan{ActionPromote, at(2 * after), ""}) {
		t.Errorf("turned off: %+v", got)
	}
}
