package app

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/sdnotify"
)

const waiting = "waiting"

// told is one message to the service manager.
type told struct {
	what string
	at   time.Duration
}

// reportFor runs a reporter for so long, in virtual time; condition and alive get the time since its start.
func reportFor(t *testing.T, limit, watchdog time.Duration, serving func(time.Duration) bool,
	alive func(context.Context, time.Duration) error,
) (all []told) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		r := reporter{
			send: func(what ...string) error {
				for _, w := range what {
					all = append(all, told{w, time.Since(began)})
				}
				return nil
			},
			watchdog: watchdog,
			condition: func() (string, bool) {
				if serving(time.Since(began)) {
					return "serving", true
				}
				return waiting, false
			},
			alive: func(ctx context.Context) error { return alive(ctx, time.Since(began)) },
		}
		if err := r.run(ctx); err != nil {
			t.Error(err)
		}
	})
	return all
}

func always(context.Context, time.Duration) error { return nil }

func TestReporter_SaysReady_WhenItServes(t *testing.T) {
	got := reportFor(t, 20*time.Second, 0, func(d time.Duration) bool { return d >= 2*time.Second }, always)
	want := []told{
		{sdnotify.Status + waiting, 0},
		{sdnotify.Status + "serving", 2 * time.Second}, {sdnotify.Ready, 2 * time.Second},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestReporter_WithoutLeader_IsReadyAfterALimit(t *testing.T) {
	got := reportFor(t, time.Minute, 0, func(time.Duration) bool { return false }, always)
	want := []told{{sdnotify.Status + waiting, 0}, {sdnotify.Ready, startLimit}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestReporter_Watchdog_StopsWithTheServersAnswers(t *testing.T) {
	const watchdog, hangs = 30 * time.Second, 100 * time.Second
	got := reportFor(t, time.Hour, watchdog, func(time.Duration) bool { return true },
		func(ctx context.Context, at time.Duration) error {
			if at < hangs {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
	last := time.Duration(0)
	for _, x := range got {
		if x.what == sdnotify.Watchdog {
			if x.at-last > watchdog/2 {
				t.Errorf("nothing from %v to %v, though the server answers", last, x.at)
			}
			last = x.at
		}
	}
	if last < hangs-watchdog/2 || last > hangs {
		t.Errorf("the last word comes at %v; the server hangs since %v", last, hangs)
	}
}

func TestReporter_ManagerGone_Ends(t *testing.T) {
	gone := errors.New("gone")
	r := reporter{
		send:      func(...string) error { return gone },
		condition: func() (string, bool) { return waiting, false },
	}
	if err := r.run(t.Context()); !errors.Is(err, gone) {
		t.Errorf("run: error %v, want %v", err, gone)
	}
}
