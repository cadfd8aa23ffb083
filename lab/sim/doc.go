// Package sim is a deterministic discrete-event simulator of processes that
// pass messages. Its one job is to run pure step functions under a seeded
// network: virtual time, delay, loss, duplication, partitions, crashes and
// recoveries, and a record of everything that happened.
//
// It knows no algorithm and judges no run: elections, mutual exclusion and failure detection
// are in the sibling packages, and so are the checkers, which read the records. It starts no
// goroutine, reads no clock and uses no randomness but the generator seeded by Config.Seed, so
// the same Config and the same nodes give the same records, byte for byte.
//
// Time is virtual. It is kept as a time.Duration since the start of the run and
// shown in units: one Unit is the time one message takes at the default delay,
// the "message transmission time" in which lectures state their bounds.
package sim
