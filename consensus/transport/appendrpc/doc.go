// Package appendrpc carries raft's AppendEntries, with connections and an encoding of its own. A write
// consists of AppendEntries, and raft.NetworkTransport spends a tenth of an entry's CPU on msgpack.
// Nothing else changes: a request has one answer, and a connection has one request at a time.
//
// A notice is a request without an answer. It takes the same connections, so a notice that is sent
// before a request on the same connection is also read before it.
//
// The package makes no connection itself and starts no goroutine: Client calls the dial function that
// it was given, and Serve runs on its caller's goroutine. It has one lock, which is held over neither
// network nor another lock.
package appendrpc
