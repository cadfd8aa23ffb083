// Package subtree has what the command line does with a znode and all below it:
// walk, delete, copy, move, export, import, compare. It works on a client and
// prints nothing.
//
// None of it but Move is atomic: a subtree that changes meanwhile is seen as
// each of its znodes was when its turn came. Ephemeral znodes belong to a
// session and are not written by Copy and Import. Clients cannot see that a znode
// is a container or has a time to live (ZooKeeper's DataNode.copyStat hides it), so
// the copies of such znodes are persistent ones. Sequence counters of parents start
// anew.
//
// Requests are pipelined, a bounded number at a time, so that a subtree costs
// about its bytes and not a round trip for every znode.
package subtree
