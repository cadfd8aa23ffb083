// Package failover contains the tests of failures: servers killed under load, all at once or
// one after the other, damaged and full disks, processes that stop for a while, clients that do
// not read. It has no code but tests, and needs no program but zk-lite.
package failover
