// Package tenants runs systems that keep their metadata in ZooKeeper, unchanged, on one ensemble of zk-lite whose
// leaders are killed. results.txt has what each of them did and saw in its last recorded run, and
// docs/reference/tenants.md is written from it. What clients and their libraries see is package interop's, and what
// suites of tests say is suites'. A goroutine for each system reads what its program prints, until the program ends.
package tenants
