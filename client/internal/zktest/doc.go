// Package zktest starts Apache ZooKeeper servers for the tests of the client,
// from the jars of Debian's packages zookeeper and libzookeeper-java.
//
// It is for tests only and does not use the client. A server is a child process with its
// data in the test's temporary directory; it ends with the test. It listens on free ports
// of loopback. One goroutine per process waits for its end.
package zktest
