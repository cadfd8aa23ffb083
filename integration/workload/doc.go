// Package workload runs clients at both ports of an ensemble that record the answers they get, and has package
// check judge them, while a test injects faults into the servers.
//
// A window is some time in which new clients work below a root of their own; then, with all servers up, its history
// is judged by itself, which bounds the cost of the search for a linear order. Histories are compared with a stream
// of all changes that one client follows over HTTP, through all faults of the servers, and with the tree at the
// end.
//
// It breaks no server: tests do (integration/soak, integration/upgrade).
//
// # Concurrency
//
// Every worker is one goroutine and hands its notes to the window's recorder, which has a mutex. All end with Close.
package workload
