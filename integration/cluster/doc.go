// Package cluster is the test kit for whole ensembles: it runs real server
// processes on loopback, breaks them, and talks to them with a raw protocol
// client that hides nothing.
//
// The same Ensemble represents zk-lite (Start) and Apache ZooKeeper (StartZooKeeper), so that a
// script can run on both and be compared. The kit stops its servers with the test; the servers'
// logs are printed when the test fails.
//
// It makes no claims about correctness: the tests do.
//
// # Concurrency
//
// Every process has one goroutine that waits for its end; every Conn has one
// that reads its socket. Methods of Ensemble and Server may be called from any
// goroutine, but starting and ending the same Server is for one at a time.
package cluster
