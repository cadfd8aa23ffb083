// Package zktest is for the tests of the recipes: servers to run against, connections
// that break where a test wants it, and checks that no watch and no goroutine is left.
//
// By default the servers are zk-lite's, in this process; with the build tag
// zookeeper they are Apache ZooKeeper's, from Debian's packages. The same tests
// run against both.
//
// It does not use the recipes.
package zktest
