// Package zktest starts Apache ZooKeeper servers for the tests of the client,
// from the jars of Debian's packages zookeeper and libzookeeper-java.
//
// It is for tests only and knows nothing of the client. A server is a child
// process with its data in the test's temporary directory; it ends with the
// test. Ports are chosen by the system, loopback only.
package zktest
