package forward

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// newTestBatcher returns a batcher without raft.
func newTestBatcher(ctx context.Context) *Batcher {
	return NewBatcher(ctx, 1, nil, &Stats{}, slog.New(slog.DiscardHandler))
}

// Where entries are slow, the batcher waits for clients that have just got their results, so that they need not
// wait for two entries; it waits neither with a single client nor where entries are quick.
func TestBatcher_Run_WaitsForWhoComesBack(t *testing.T) {
	for _, x := range []struct {
		clients    int
		entry      time.Duration // how long each takes
		back, want time.Duration // when the clients come back, and the next entry goes out
	}{
		{clients: 1, entry: 100 * time.Millisecond, back: 0, want: 0},
		{clients: 8, entry: slowEntry - 1, back: time.Microsecond, want: 0},
		{clients: 8, entry: slowEntry, back: slowEntry / gatherPart / 2, want: slowEntry / gatherPart / 2},
		{clients: 8, entry: 20 * time.Millisecond, back: time.Second, want: 20 * time.Millisecond / gatherPart},
	} {
		synctest.Test(t, func(t *testing.T) {
			var entries []time.Time
			b := newTestBatcher(t.Context())
			b.propose = func([]byte) func() error {
				entries = append(entries, time.Now())
				return func() error { clock.Sleep(x.entry); return nil }
			}
			b.submit(state.Batch{Count: x.clients, Commands: []byte{1}})
			go b.Run()
			clock.Sleep(x.entry)
			b.submit(state.Batch{Count: 1, Commands: []byte{1}}) // the first is back at once
			clock.Sleep(x.back)
			b.submit(state.Batch{Count: x.clients - 1, Commands: []byte{1}})
			clock.Sleep(time.Minute)
			b.End()
			synctest.Wait()
			if wait := entries[1].Sub(entries[0]) - x.entry; wait != x.want {
				t.Errorf("%+v: the second entry came %v after the end of the first", x, wait)
			}
		})
	}
}

// All servers apply one entry after the other, and serve reads in between: an entry that is too large delays reads, and
// a small one costs more syncs of the disk. A batch cannot be split.
func TestBatcher_Take_FillsEntriesAndNoMore(t *testing.T) {
	type batch struct{ bytes, count int }
	const bytes, count = maxEntryBytes, maxEntryCommands
	for name, x := range map[string]struct {
		batches []batch
		want    []int // batches in each entry
	}{
		"all fit":             {[]batch{{1, 1}, {2, 2}, {3, 3}}, []int{3}},
		"bytes fit exactly":   {[]batch{{bytes / 2, 1}, {bytes / 4, 1}, {bytes / 4, 1}, {1, 1}}, []int{3, 1}},
		"one byte too many":   {[]batch{{bytes / 2, 1}, {bytes / 4, 1}, {bytes/4 + 1, 1}}, []int{2, 1}},
		"count fits exactly":  {[]batch{{9, count / 2}, {9, count / 4}, {9, count / 4}, {9, 1}}, []int{3, 1}},
		"one too many":        {[]batch{{9, count / 2}, {9, count / 4}, {9, count/4 + 1}}, []int{2, 1}},
		"one alone too large": {[]batch{{1, 1}, {3 * bytes, 1}, {1, 3 * count}, {1, 1}}, []int{1, 1, 1, 1}},
		"the first too large": {[]batch{{3 * bytes, 1}, {1, 1}, {1, 1}}, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestBatcher(t.Context())
			for i, y := range x.batches {
				b.submit(state.Batch{First: uint64(i), Count: y.count, Commands: make([]byte, y.bytes)})
			}
			var got []int
			next := uint64(0)
			for len(b.batches) > 0 {
				entry := b.take()
				if len(entry) == 0 {
					t.Fatalf("an entry without a batch, though %d wait", len(x.batches)-int(next))
				}
				for _, y := range entry {
					if y.First != next {
						t.Fatalf("batch %d comes after %d others", y.First, next)
					}
					next++
				}
				got = append(got, len(entry))
			}
			if !slices.Equal(got, x.want) || b.bytes != 0 || b.count != 0 {
				t.Errorf("entries of %v batches, want %v; the empty inbox counts %d bytes and %d commands", got, x.want, b.bytes, b.count)
			}
		})
	}
}

// A leader that is slow must not hold all that the others can send; and a server that has waited must be
// admitted as soon as an entry has left, or that server's clients would hang.
func TestBatcher_Submit_WaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBatcher(t.Context())
		defer b.wakeAll()
		defer b.End()
		x := state.Batch{Count: 1, Commands: make([]byte, maxEntryBytes)}
		var in atomic.Int64
		const room, streams = maxInboxBytes / maxEntryBytes, 20
		for range streams {
			go func() {
				if b.submit(x) {
					in.Add(1)
				}
			}()
		}
		for taken := range 2 * streams {
			synctest.Wait()
			if want := min(room+taken, streams); int(in.Load()) != want {
				t.Fatalf("%d of %d batches are in when %d were taken, want %d", in.Load(), streams, taken, want)
			}
			b.take()
		}
	})
}

// What raft has refused is sent again only because the batcher ends, and the streams with it.
func TestBatcher_Run_ProposesAllUntilAnEntryIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var proposed atomic.Int64
		results := make(chan error)
		b := newTestBatcher(t.Context())
		b.propose = func([]byte) func() error {
			proposed.Add(1)
			return func() error {
				select {
				case err := <-results:
					return err
				case <-t.Context().Done():
					return nil
				}
			}
		}
		for range 5 { // an entry each
			b.submit(state.Batch{Count: 1, Commands: make([]byte, maxEntryBytes)})
		}
		go b.Run()
		check := func(what string, want int64) {
			t.Helper()
			if synctest.Wait(); proposed.Load() != want || b.ctx.Err() != nil {
				t.Fatalf("%s: %d entries were proposed, want %d; ended: %v", what, proposed.Load(), want, b.ctx.Err())
			}
		}
		result := func(err error) {
			t.Helper()
			select {
			case results <- err:
			case <-time.After(time.Minute):
				t.Fatal("nobody waits for an entry's end")
			}
		}
		check("at once", 1)
		clock.Sleep(time.Hour)
		check("beside one that is slow", 1)
		result(nil)
		check("when it was applied", 2)
		if last, _, _ := b.stats.Sizes(); last < maxEntryBytes {
			t.Errorf("the last entry counts %d bytes", last)
		}
		result(errors.New("leadership lost"))
		if synctest.Wait(); b.ctx.Err() == nil {
			t.Error("the batcher goes on after a refused entry")
		}
	})
}
