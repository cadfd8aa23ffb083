// Package datadir reads and writes the data directories of ZooKeeper's servers, 3.4 to 3.9: snapshots (plain, gzip,
// snappy) and transaction logs. Load restores the state that a server would start with, by its own rules
// (FileTxnSnapLog.restore), and is stricter where these would lose something silently; WriteSnapshot writes a snapshot
// from which a server starts.
//
// Reading changes nothing in a directory. The package knows no connection, no log of ours and no configuration. It has
// no goroutine and no lock.
package datadir
