// Command compare measures zk-lite side by side with Apache ZooKeeper (Debian's
// package) and etcd: three servers each, all syncing to the same disk, the same
// loads in turn, and a server that does no work as the upper bound. It writes
// the table of medians and ratios to bench/results.
//
//	go run ./bench/compare          # five rounds of 10 s a row, 50 minutes
//	go run ./bench/compare -short   # three rounds of 3 s a row, 17 minutes
//	go run ./bench/compare -rounds 1 -duration 1s -warm-up 300ms -jit-warm-up 1s -znodes 100000 -out -
//
//	go run ./bench/compare -systems zk-lite -binary base=/tmp/zk-lite -rounds 10 -short -out -
//
// The third takes three minutes and shows that everything works, no more. The last compares this
// checkout with another build, both in turn within each round.
//
// A round starts each system afresh, in another order every round, warms it up
// (Java compiles what is used often), runs all rows on it, and stops it; so no
// system measures the clean-up of another. A row that fails, also because a system has
// left a request without an answer, is begun again on fresh servers, three times at
// most, and the document tells of it. The document is written anew after every system
// of a round, so an interrupt leaves what has been measured.
//
// ZooKeeper's and zk-lite's load comes from package load in this process, etcd's
// from a program with etcd's own client and the same mixes and clock (package system).
//
// # Concurrency
//
// One thing is measured at a time, by the main goroutine.
package main
