package forward

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// newTestBatcher returns a batcher without raft.
func newTestBatcher(ctx context.Context) *Batcher {
	return NewBatcher(ctx, 1, nil, &Stats{}, slog.New(slog.DiscardHandler))
}

func TestBatcher_WaitForSlot_WaitsForTheEntryBeforeButNotLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		b := newTestBatcher(ctx)
		timer := time.NewTimer(overlapAfter)
		start := time.Now()
		if !b.waitForSlot(timer, time.Time{}) || time.Since(start) != 0 {
			t.Fatalf("one alone waited for %v", time.Since(start))
		}
		time.AfterFunc(overlapAfter/2, b.free)
		last := time.Now()
		if !b.waitForSlot(timer, last) || time.Since(last) != overlapAfter/2 {
			t.Errorf("beside an entry of %v it waited for %v", overlapAfter/2, time.Since(last))
		}
		// freed may still hold the news of an entry long gone.
		time.AfterFunc(time.Hour, b.free)
		last = time.Now()
		if !b.waitForSlot(timer, last) || time.Since(last) != overlapAfter {
			t.Errorf("beside an entry that hangs it waited for %v", time.Since(last))
		}
		// Both slots are taken now.
		if !b.waitForSlot(timer, last) || time.Since(last) != time.Hour {
			t.Errorf("the third waited for %v", time.Since(last))
		}
		b.End()
		if b.waitForSlot(timer, time.Now()) {
			t.Error("the batcher has ended")
		}
	})
}
