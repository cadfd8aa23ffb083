// Package wait waits for conditions in tests, of which no channel tells. It has no goroutine,
// and is of no use in a testing/synctest bubble, where time passes by itself.
package wait

import (
	"errors"
	"time"
)

// Patience is how long a test waits for what should happen soon: much too long, because
// machines with far too much to do exist.
const Patience = 2 * time.Minute

// A look at a condition may cost a connection: they get rarer the longer it takes.
const (
	firstPause = time.Millisecond
	maxPause   = 20 * time.Millisecond
)

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Until waits until a condition holds. After Patience it fails the test.
func Until(tb TB, what string, condition func() bool) {
	tb.Helper()
	if !Holds(condition) {
		tb.Fatal("after ", Patience, " it is not so: ", what)
	}
}

// Holds waits until a condition holds, and reports whether it did within Patience.
func Holds(condition func() bool) bool {
	not := errors.New("not yet")
	return For(Patience, func() error {
		if condition() {
			return nil
		}
		return not
	}) == nil
}

// For waits until condition returns nil, and returns its last error after patience.
func For(patience time.Duration, condition func() error) error {
	deadline := time.Now().Add(patience)
	pause := time.NewTimer(firstPause)
	defer pause.Stop()
	for next := firstPause; ; next = min(2*next, maxPause) {
		err := condition()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		pause.Reset(next)
		<-pause.C
	}
}
