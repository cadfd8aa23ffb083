// Package httpapi asks the HTTP API of the servers of an ensemble: it goes from server to
// server when one is down or tells it to, waits as long as a server asks for, and tells
// apart what has failed for certain from what may have happened. It knows no command line
// and nothing of what the resources mean.
//
// # Concurrency
//
// A Client may be used from any goroutine. It runs none of its own, but for the timer of
// a request that is under way, which ends with the answer's body.
package httpapi
