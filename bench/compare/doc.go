// Command compare measures zk-lite side by side with other systems on the same machine,
// three servers each, all syncing to the same disk. It has four suites:
//
//	servers   the same loads on zk-lite, Apache ZooKeeper (Debian's package), etcd, and a
//	          server that does no work, as the upper bound
//	http      zk-lite's HTTP API and etcd's JSON gateway
//	clients   package client and go-zookeeper, each in a process of its own (bench/clients)
//	growth    zk-lite alone, as connections, trees, watches and servers grow (package growth)
//
// It writes the tables of medians and ratios to a file in bench/results.
//
//	go run ./bench/compare                        # the suite servers, five rounds: 50 minutes
//	go run ./bench/compare -short                 # three rounds of 3 s a row: 17 minutes
//	go run ./bench/compare -suite http,clients,growth -short   # 18 minutes
//	go run ./bench/compare -rounds 1 -duration 1s -warm-up 300ms -jit-warm-up 1s -znodes 100000 -out -
//	go run ./bench/compare -systems zk-lite -binary base=/tmp/zk-lite -rounds 10 -short -out -
//	go run ./bench/compare -sync 5ms -rows set-64 -short -out -
//
// The fourth takes three minutes and shows that everything works, no more. The fifth
// compares this checkout with another build, both in turn within each round. The last adds 5 ms to
// each disk sync of every system, as on a cloud's volume (internal/testkit/slowdisk).
//
// A round starts each system afresh, in another order every round, warms it up
// (Java compiles what is used often), runs all rows on it, and stops it; so no
// system measures the clean-up of another. A row that fails, also because a system has
// left a request without an answer, is begun again on fresh servers, three times at
// most, and the document tells of it. The document is written anew after every system
// of a round, so an interrupt leaves what has been measured.
//
// # Concurrency
//
// One thing is measured at a time, by the main goroutine.
package main
