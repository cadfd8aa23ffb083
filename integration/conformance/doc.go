// Package conformance sends the same script to a real Apache ZooKeeper ensemble
// and to zk-lite, over the raw protocol, and compares every reply, Stat, error
// code and event, field by field. It has no code but tests, and they need
// ZooKeeper: run them with -tags interop.
//
// Three things are compared by what they refer to and not by value: a zxid by
// its distance from the first one of the script, a time by the transaction it
// belongs to, a session id by the script's name of the session. Names of
// children and paths of ephemerals, whose order ZooKeeper leaves open, are
// sorted. What else may differ is in the table of differences (differences.go),
// each row with its reason, and nothing else may.
package conformance
