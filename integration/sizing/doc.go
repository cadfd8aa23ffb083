// Package sizing tests the estimates of internal/sizing against real servers, with smaller trees than one would ask
// about. It starts no goroutine but those of its load.
package sizing
