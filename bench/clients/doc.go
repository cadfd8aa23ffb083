// Command clients measures package client beside go-zookeeper, the client that Go
// programs use today: get and set with 1, 64 and 1,024 requests in flight on one
// connection, against three servers of zk-lite and of Apache ZooKeeper. It writes a
// table to bench/results.
//
//	cd bench/clients
//	go run .           # five rounds of 5 s a row, 12 minutes
//	go run . -short    # three rounds of 2 s, 4 minutes
//
// "In flight" is that many goroutines which call Get or Set one after the other, on
// both clients; and for package client also one goroutine that keeps so many
// asynchronous calls under way, which go-zookeeper does not have. All connections go to
// the leader, whose answers to a set come without a hop.
//
// It is a module of its own, so that zk-lite does not depend on go-zookeeper.
//
// # Concurrency
//
// One client is measured at a time. What a client does in the background is its own
// business and part of the measurement.
package main
