// Package sizing tests the estimates of internal/sizing against real servers, which are filled with something smaller
// than what one would ask about. It starts no goroutine but those of its load.
package sizing
