// Package metrics is the one table of what a server measures, and its writers: Prometheus's
// text format, the lines of mntr, the JSON of the AdminServer's monitor, and
// docs/reference/metrics.md, which a test writes. It takes the measurements that the ZooKeeper port
// and the HTTP port share; it counts nothing itself and starts no goroutine.
package metrics
