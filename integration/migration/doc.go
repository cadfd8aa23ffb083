// Package migration tests the way from real ZooKeeper servers, 3.4 to 3.9, to zk-lite and back: what clients of the
// origin saw is compared with what clients see afterwards. It has tests only: with the tag interop those of the gate,
// with soak, too, every version.
package migration
