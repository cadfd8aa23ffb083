// Package failover repeatedly takes the leader away from an ensemble of real server processes, and measures how
// long clients of the other servers get no answer (Run), and how long all clients of a killed leader need to
// reconnect (Reconnect): the suites failover and reconnect of the program bench.
//
// One writer, at a server that survives, writes a znode repeatedly, one write at a time; its longest
// time between two acknowledgements that ends after the fault is the gap. -load adds writers at all
// servers. The versions that writers get back show whether a write was lost or done twice; at the end
// every server is checked. Syncs are those that began within the gap. A server has campaigned if it has
// logged a vote for itself (raft's real election, not the pre-vote); a duel is when more than one has
// after one fault. ZooKeeper does not log this.
//
// The logs of all servers for the ten longest gaps are kept in -logs, a directory for each.
//
// # Concurrency
//
// The caller's goroutine injects one fault after the other. Every writer has a goroutine.
package failover
