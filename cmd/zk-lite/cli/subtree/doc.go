// Package subtree has the operations of the command line on a znode and all below it:
// walk, delete, copy, move, export, import, compare. It uses a client and prints nothing.
//
// Only Move is atomic. If a subtree changes during another operation, each znode is
// read as it is when its turn comes. Ephemeral znodes belong to a
// session and are not written by Copy and Import. Clients cannot see that a znode
// is a container or has a time to live (ZooKeeper's DataNode.copyStat hides it), so
// the copies of such znodes are persistent ones. Sequence counters of parents start at 0
// again.
//
// Requests are pipelined, a bounded number at a time, so that there is not one round
// trip per znode. The package starts no goroutine.
package subtree
