// Command compare measures zk-lite side by side with Apache ZooKeeper (Debian's
// package) and etcd: three servers each, all syncing to the same disk, the same
// loads in turn, and a server that does no work as the upper bound. It writes
// the table of medians and ratios to docs/BENCHMARKS.md.
//
//	go run ./bench/compare      # five rounds, 50 minutes
//	go run ./bench/compare -rounds 1 -duration 1s -warm-up 300ms -heat 1s -znodes 100000 -out -
//
// The second takes three minutes and shows that everything works, no more.
//
// A round starts each system afresh, in another order every round, heats it up
// (Java compiles what is used often), runs all rows on it, and stops it; so no
// system measures the clean-up of another.
//
// ZooKeeper's and zk-lite's load comes from package load in this process, etcd's
// from the program in etcdpeer, with etcd's own client and the same mixes and
// clock. The program in etcdpeer is a module of its own, so that etcd's
// dependencies are not ours.
//
// # Concurrency
//
// One thing is measured at a time, by the main goroutine. Every process of a
// server has a goroutine that waits for its end.
package main
