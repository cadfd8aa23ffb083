// Package monitoring tests the means of monitoring: that the rules, the dashboard and docs/monitoring.md use
// metrics that exist, and, with the tag prometheus, that a real Prometheus sees faults of real servers begin and
// end. It does not test the meaning of metrics: api/metrics does. It starts no goroutine but that of its load.
package monitoring
