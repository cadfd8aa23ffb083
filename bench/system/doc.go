// Package system starts what is measured, as processes of this machine: zk-lite
// from this checkout, Apache ZooKeeper from Debian's package, etcd from its
// module, and the server that does no work. All get the same disk and as much
// safety; what each is set to can be shown (System.Settings).
//
// It also says where it runs (Machine) and counts disk syncs (CountSyncs). It
// decides on no load (its users do) and puts none on, but passes it to package
// load or, for etcd, to the program in etcdload, which is a module of its own so
// that etcd's dependencies are not ours.
//
// # Concurrency
//
// An Ensemble belongs to one goroutine. Every process has a goroutine that waits
// for its end; the process, and with it the goroutine, ends with Ensemble.Down.
package system
