// Package changes is a server's record of the newest changes of the tree, and the
// streams that report from it to clients of the HTTP API.
//
// A stream keeps no queue of its own: it reads the record, from the position where
// it is. So a client that resumes on another server, and one that reads slowly, cost
// nothing.
//
// The package does not make the changes: package server adds each with the view lock
// held alone. It starts no goroutine. A Feed is safe for concurrent use; a Stream
// belongs to one goroutine, which takes the view lock shared to read the record.
// Feed.mu, which protects the set of streams, may be taken under the view lock, and
// nothing is locked under it.
package changes
