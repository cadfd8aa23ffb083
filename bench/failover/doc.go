// Command failover takes the leader away from an ensemble of real server processes, again and again, and
// says for how long clients of the other servers had no answer.
//
//	go run ./bench/failover -kills 30 -sync 5ms
//	go run ./bench/failover -kills 30 -sync 5ms -servers 5 -load 48 -busy
//	go run ./bench/failover -kills 30 -sync 5ms -system zookeeper
//	go run ./bench/failover -kills 30 -sync 15ms,1ms          # server 1 has a slow disk, the others a fast one
//	go run ./bench/failover -kills 30 -fault stop             # or hang, fulldisk, transfer, drain, sigterm
//	go run ./bench/failover -kills 30 -rtt 20ms               # between servers; needs root
//	go run ./bench/failover -kills 30 -rtt 100us -fault cut   # needs root
//	go run ./bench/failover -kills 5 -fault return -load 47   # a follower's return with a long log to catch up
//	go run ./bench/failover -kills 30 -plan issue             # about twelve configurations, one table
//
// One writer, at a server that survives, writes a znode over and over, one write at a time; its longest
// time between two acknowledgements that ends after the fault is the gap. -load adds writers at all
// servers. The versions that writers get back show whether a write was lost or done twice, on every
// server at the end. Syncs are those that began within the gap. A server has campaigned if its log says
// that it has voted for itself (raft's real election, not the pre-vote); a duel is when more than one has
// after one fault. ZooKeeper's logs do not say such a thing.
//
// The logs of all servers for the ten longest gaps are kept in -logs, a directory for each.
//
// # Concurrency
//
// Faults come one after the other from the main goroutine. Every writer has a goroutine.
package main
