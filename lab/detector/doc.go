// Package detector is a heartbeat failure detector on the simulator and the
// measure of its completeness and accuracy.
//
// Every process sends a heartbeat to every other each Period T and suspects a peer from which
// it heard nothing for T + Timeout D. The detector can be run alone, or be wrapped around
// another node (an election), which then learns whom to suspect. It does not repair wrong
// suspicions beyond trusting a peer again when a heartbeat arrives, so over a lossy or slow
// network it is complete but not accurate (T. Chandra and S. Toueg, "Unreliable Failure
// Detectors for Reliable Distributed Systems", JACM 43(2), 1996).
package detector
