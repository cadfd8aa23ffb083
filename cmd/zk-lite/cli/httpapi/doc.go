// Package httpapi sends requests to the HTTP API of an ensemble. It goes on to the next
// server when one is down or does not serve, waits as long as a server asks it to, and
// distinguishes requests that have failed from those that may have happened. It does not
// depend on the command line or on the meaning of the resources.
//
// # Concurrency
//
// A Client may be used from any goroutine. It has no goroutine of its own; a request in
// progress has a timer, which ends with the answer's body.
package httpapi
