//go:build faults

package sim

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/fault"
)

// deliberateSeeds is how many seeds a deliberate fault may escape.
const deliberateSeeds = 150

// TestSim_DeliberateFaults_AreCaught switches each fault of package fault on and counts the seeds
// until a checker notices. It needs the build tag:
//
//	go test -tags faults ./integration/sim -run DeliberateFaults -v -timeout 30m
func TestSim_DeliberateFaults_AreCaught(t *testing.T) {
	first := *flagSeed
	if first == 0 {
		first = 1
	}
	for _, f := range fault.All() {
		t.Run(string(f), func(t *testing.T) {
			fault.Set(f)
			defer fault.Set("")
			start, virtual := time.Now(), time.Duration(0)
			for n := range uint64(deliberateSeeds) {
				opt := optionsOf(first + n)
				out := simulate(t, opt, first+n)
				virtual += out.Virtual
				if len(out.Violations) == 0 {
					continue
				}
				names := map[string]int{}
				for _, v := range out.Violations {
					names[v.Guarantee]++
				}
				t.Logf("caught with seed number %d, after %v of virtual time (%v real), as %v: %s", n+1,
					virtual.Round(time.Second), time.Since(start).Round(time.Millisecond),
					slices.Sorted(maps.Keys(names)), fmt.Sprintf("%.300s", out.Violations[0]))
				return
			}
			t.Errorf("%d seeds have not noticed it", deliberateSeeds)
		})
	}
}
