// Package suites keeps what Apache ZooKeeper's and Curator's own tests gave when ./run ran them against ZooKeeper and
// zk-lite: results.txt has a line for each test, explanations.txt says why a test says nothing or differs, and
// docs/reference/suites.md is written from both. It runs no test of others itself, and starts no goroutine.
package suites
