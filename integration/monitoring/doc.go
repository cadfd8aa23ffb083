// Package monitoring tests what an operator watches: that the rules, the dashboard and docs/monitoring.md ask for
// metrics that there are, and, with the tag prometheus, that a real Prometheus sees faults of real servers begin and
// end. It does not test what a metric means: api/metrics does. It starts no goroutine but that of its load.
package monitoring
