// Package system starts the systems to measure, as processes of this machine: zk-lite from this
// checkout, Apache ZooKeeper from Debian's package, etcd from its module, and the server that
// does no work. All get the same disk and the same safety; System.Settings shows the settings
// of each.
//
// It also describes the machine (Machine) and counts disk syncs (CountSyncs). Its users decide
// on the load; it only passes it to package load or, for etcd, to the program in etcdload,
// which is a module of its own so that etcd's dependencies are not ours.
//
// # Concurrency
//
// An Ensemble belongs to one goroutine. Every process has a goroutine that waits
// for its end; the process, and with it the goroutine, ends with Ensemble.Down.
package system
