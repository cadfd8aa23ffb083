// Package zktest is for the tests of the recipes and examples: servers to run
// against, connections that break where a test wants it, and a look at what is
// left behind.
//
// By default the servers are zk-lite's, in this process; with the build tag
// zookeeper they are Apache ZooKeeper's, from Debian's packages. The same tests
// run against both.
//
// It knows nothing of the recipes.
package zktest
