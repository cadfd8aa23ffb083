// Package wait waits in tests for conditions that no channel signals. It has no goroutine, and
// is of no use in a testing/synctest bubble, where time passes by itself.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Patience is how long a test waits for something that should happen soon: far too long,
// because there are overloaded machines.
const Patience = 2 * time.Minute

// A check of a condition may cost a connection: checks become rarer the longer it takes.
const (
	firstPause = time.Millisecond
	maxPause   = 20 * time.Millisecond
)

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// errNot is returned for a condition without an error of its own.
var errNot = errors.New("not yet")

// Until waits until a condition holds. After Patience it fails the test.
func Until(tb TB, what string, condition func() bool) {
	tb.Helper()
	Succeeds(tb, what, func() error { return asError(condition()) })
}

// Succeeds waits until condition returns nil. After Patience it fails the test, with the last error.
func Succeeds(tb TB, what string, condition func() error) {
	tb.Helper()
	Within(tb, what, Patience, condition)
}

// Within is Succeeds with another patience.
func Within(tb TB, what string, patience time.Duration, condition func() error) {
	tb.Helper()
	if err := For(context.Background(), what, patience, condition); err != nil {
		tb.Fatal(err)
	}
}

// Holds waits until a condition holds, and reports whether it did within Patience.
func Holds(condition func() bool) bool {
	return For(context.Background(), "", Patience, func() error { return asError(condition()) }) == nil
}

func asError(holds bool) error {
	if holds {
		return nil
	}
	return errNot
}

// For waits until condition returns nil. After patience, or at the end of ctx, it returns the last error with the
// name of the condition.
func For(ctx context.Context, what string, patience time.Duration, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pause := time.NewTimer(firstPause)
	defer pause.Stop()
	for next := firstPause; ; next = min(2*next, maxPause) {
		err := condition()
		if err == nil {
			return nil
		}
		pause.Reset(next)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("waited %v in vain for: %s; at the end: %w", patience, what, err)
		}
	}
}

// Steadily checks that condition stays nil for a while.
func Steadily(tb TB, what string, duration time.Duration, condition func() error) {
	tb.Helper()
	ticker := time.NewTicker(maxPause)
	defer ticker.Stop()
	for begin := time.Now(); time.Since(begin) < duration; <-ticker.C {
		if err := condition(); err != nil {
			tb.Fatal(fmt.Sprintf("%s: not any more after %v: %v", what, time.Since(begin), err))
		}
	}
}
