package founding

import (
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// The voters that are fresh say which data they have, and whether their release knows any.
func TestRound_JudgeSeeds(t *testing.T) {
	for _, x := range []struct {
		seeds map[string][]state.ServerID
		want  string
		waits string // contained; empty: nothing to wait for
	}{
		{seeds: map[string][]state.ServerID{membership.NoSeed: {1, 2, 3}}},
		{seeds: map[string][]state.ServerID{membership.NoSeed: {1}, "": {2, 3}}},
		{seeds: map[string][]state.ServerID{membership.NoSeed: {1, 2}, "a": {3}}, want: "a"},
		{seeds: map[string][]state.ServerID{"a": {1, 2, 3}}, want: "a"},
		{
			seeds: map[string][]state.ServerID{"b": {1, 3}, "a": {2}}, want: "a",
			waits: "server 2 has a, and server 1 has b",
		},
		{
			seeds: map[string][]state.ServerID{"": {2}, membership.NoSeed: {1}, "a": {3}}, want: "a",
			waits: "for servers [2] to run a release that can begin with imported data, those of server 3",
		},
	} {
		r := &round{Founder: &Founder{cfg: Config{Self: 1, Servers: three}}, seeds: x.seeds}
		got := r.judgeSeeds()
		if waits := strings.Join(r.waits, "; "); got != x.want || !strings.Contains(waits, x.waits) || (x.waits == "") != (waits == "") {
			t.Errorf("%v: %q, waiting %q; want %q, waiting %q", x.seeds, got, waits, x.want, x.waits)
		}
	}
}
