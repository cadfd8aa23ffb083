// Package migration tests the way from real ZooKeeper servers, 3.4 to 3.9, to zk-lite and back: what clients of the
// origin saw is compared with what clients see afterwards. It has tests only; make migration adds to those of the gate
// the other versions, ensembles, and an hour's worth of trouble.
package migration
