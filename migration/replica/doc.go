// Package replica is a copy of what every server of a ZooKeeper ensemble holds: znodes, sessions, and the zxid of the
// last transaction. It decodes that state and the transactions that change it, as ZooKeeper's servers send and store
// them, applies the transactions by ZooKeeper's own rules, and encodes the state again.
//
// It does not know files (datadir does), connections (learner does) or our log. It has no goroutine, no clock and no
// lock: what is applied to two equal replicas leaves them equal, so consensus/state may use it.
package replica
