// Package conformance sends the same scripts to a real Apache ZooKeeper ensemble, of the
// version zookeeper.Oracle, and to zk-lite, over the raw protocol, and compares every reply,
// Stat, error code and event, field by field. It has no code but tests, and they need ZooKeeper
// from Maven Central: run them with -tags interop. One script is written by hand, by topics, and
// played to ZooKeeper 3.8, too; another is for what is off unless it is configured (reconfig,
// local sessions, reads without a majority); the third is random, and ZK_LITE_SEED replays it.
//
// Three things are compared by reference and not by value: a zxid by the step of the script
// that took it, a time by the transaction it belongs to, a session id by the script's name of
// the session. Names of children, paths of ephemerals and ids of a connection, whose order
// ZooKeeper leaves open, are sorted. Other permitted differences are in the table of
// differences (differences_test.go), each row with its reason; there are no others. What a
// ZooKeeper ensemble does not answer cannot be compared: since 3.9 that is a create whose body
// cannot be decoded, and a multi with a create whose ACL is null.
package conformance
