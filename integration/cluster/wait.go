package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

const (
	// Patience is how long the kit waits for something that should happen soon,
	// on a machine that may be busy with other tests.
	Patience = 60 * time.Second
	// pollInterval is how often a condition is looked at. A look costs a
	// connection or two.
	pollInterval = 10 * time.Millisecond
)

// errNot is what conditions return that have nothing better to say.
var errNot = errors.New("not yet")

// Eventually waits until condition returns nil and fails the test with its
// last error when that takes longer than patience.
func Eventually(t testing.TB, what string, patience time.Duration, condition func() error) {
	t.Helper()
	if err := wait.For(patience, condition); err != nil {
		t.Fatalf("waited %v for: %s; at the end: %v", patience, what, err)
	}
}

// Steadily checks that condition stays nil for a while.
func Steadily(t testing.TB, what string, duration time.Duration, condition func() error) {
	t.Helper()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for begin := time.Now(); time.Since(begin) < duration; <-ticker.C {
		if err := condition(); err != nil {
			t.Fatalf("%s: not any more after %v: %v", what, time.Since(begin), err)
		}
	}
}
