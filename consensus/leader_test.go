package consensus

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// paceReign is a reign without a node.
func paceReign(t *testing.T) *reign {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return newReign(&Node{ctx: ctx}, 1, &refusals{})
}

func TestReign_Pace_WaitsForTheEntryBeforeButNotLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := paceReign(t)
		timer := time.NewTimer(overlapAfter)
		start := time.Now()
		if !r.pace(timer, time.Time{}) || time.Since(start) != 0 {
			t.Fatalf("one alone waited for %v", time.Since(start))
		}
		time.AfterFunc(overlapAfter/2, r.free)
		last := time.Now()
		if !r.pace(timer, last) || time.Since(last) != overlapAfter/2 {
			t.Errorf("beside an entry of %v it waited for %v", overlapAfter/2, time.Since(last))
		}
		// freed may still hold the news of an entry long gone.
		time.AfterFunc(time.Hour, r.free)
		last = time.Now()
		if !r.pace(timer, last) || time.Since(last) != overlapAfter {
			t.Errorf("beside an entry that hangs it waited for %v", time.Since(last))
		}
		// Both slots are taken now.
		if !r.pace(timer, last) || time.Since(last) != time.Hour {
			t.Errorf("the third waited for %v", time.Since(last))
		}
		r.abort()
		if r.pace(timer, time.Now()) {
			t.Error("the reign has ended")
		}
	})
}
