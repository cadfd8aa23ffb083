// Package sizing tests the estimates of internal/sizing against real servers, with smaller trees than in practice.
// It starts no goroutine but those of its load.
package sizing
