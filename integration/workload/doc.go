// Package workload is clients that work at both ports of an ensemble, write down what they were told, and have package
// check judge it, while a test does to the servers what it likes.
//
// A window is some time in which new clients work below a root of their own; then, with all servers up, its history is
// judged by itself, which bounds what the search for a linear order costs. The truth that histories are compared with
// is a stream of all changes that one client follows over HTTP, across all that happens to the servers, and the tree at
// the end.
//
// It breaks no server: tests do (integration/soak, integration/upgrade).
//
// # Concurrency
//
// Every worker is one goroutine and hands its notes to the window's recorder, which has a mutex. All end with Close.
package workload
