// Package tier sorts tests by how long they take. It has no goroutine.
package tier

import "testing"

// Seconds skips a test that takes two seconds or more when -short is given, so that
// all others together take less than a minute.
func Seconds(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("takes seconds")
	}
}
