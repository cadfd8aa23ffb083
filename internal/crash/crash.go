// Package crash ends the process on a panic before deferred functions run that could wait forever for a lock of the
// panicking goroutine. It knows no lock and starts no goroutine.
package crash

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
)

// ExitCode is that of a Go program that ends with a panic.
const ExitCode = 2

// OnPanic ends the process if there is a panic, with its stack on standard error. A function that defers anything
// that takes a lock defers OnPanic after it, so that it runs first; so does a caller whose panics would be
// recovered. Panics with one of the values in except continue.
func OnPanic(except ...error) {
	x := recover()
	if x == nil {
		return
	}
	if err, ok := x.(error); ok && slices.Contains(except, err) {
		panic(x)
	}
	fmt.Fprintf(os.Stderr, "panic: %v\n\n%s", x, debug.Stack())
	os.Exit(ExitCode)
}
