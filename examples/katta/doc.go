// Command katta is a sharded index, after Katta, which served Lucene's indices from
// many machines: each shard of the index is loaded by some of the nodes, a master
// says by which, and a query goes to all shards.
//
// If a node dies the master assigns its shards to others; as each shard is at two
// nodes, queries are answered in the meantime. If the master dies, another process
// takes over. Queries do not need the master.
//
//	go run ./cmd/zk-lite dev                    # in one terminal
//	go run ./examples/katta                     # in two or three others
//	go run ./examples/katta -query "lock token" # in one more, as often as you like
//
// Ctrl-C ends a process. The znodes:
//
//	/examples/katta/master              recipes.Election
//	/examples/katta/cluster/nodes       recipes.Group: the nodes alive
//	/examples/katta/cluster/shards/S    the nodes that are to have shard S
//	/examples/katta/serving/S           recipes.Group: those that have loaded it
//
// What shall be and what is are kept apart: the master writes only the one, nodes
// only the other, and each follows what it does not write. The master's writes are
// transactions that check its own znode in the election, so that one who was master
// cannot change an assignment. Queries go by what is.
//
// A node that has joined gets shards when others die, or new ones; shards that have
// their nodes do not move. The documents are part of the program (corpus.go), where
// Katta has them in a distributed file system.
//
// # Concurrency
//
// Node.Run has a goroutine for its HTTP server, which ends before Run returns, and
// Searcher.Search one for each shard, which it waits for. Master.Run starts none.
package main
