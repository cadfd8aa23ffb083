// Package forward brings the commands of all servers to the leader, many at a time, each at least once and
// in order; the state machine drops what it has seen. Sessions that were touched travel on the same stream.
//
// A command's way, in the order of the files: the Queue keeps it until its result has been applied here
// (queue.go); the Forwarder sends batches of it on one ordered stream to the leader (forwarder.go, stream.go),
// which accepts the streams of all others (accept.go); the leader's Batcher makes entries of the batches and
// hands them to raft (batcher.go). When the leader fails or the stream breaks, everything without a result is
// sent again to the next leader.
//
// The package does not import raft, does not elect, and applies nothing.
//
// # Goroutines and locks
//
// Of a Forwarder: Run forwards, with one more that reads what the leader sends; Accept accepts streams, with
// one more for each. Of a Batcher: Run proposes, with one more that waits for each entry in flight. The caller
// starts Run and Accept and waits for the others by Config.Tasks, except for those that wait for entries, which may
// never end.
//
// Locks: Queue.mu, Batcher.mu, Streams.mu, Stats.mu. Each is taken alone, and nothing is called under it. The
// goroutine that applies entries holds the Handler's view lock when it takes Queue.mu.
package forward
