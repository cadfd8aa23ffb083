// Package mux carries all traffic between the servers of an ensemble over one listener per server.
//
// Every connection opens with a hello (hello.go): magic, version, kind, ensemble, the sender's id, the
// wanted server's id. The acceptor admits the connection, or refuses it with a reason that the dialler
// gets as a *RefusedError. A connection that ends without a byte looks like the failure detector's
// probe; it is logged at debug level only.
//
// The package reads nothing after the hello, does not import raft, decides no membership, and
// authenticates no one beyond what the dial function, the listener and Config.Guard do (TLS belongs there).
//
// New starts one accepting goroutine and, for each connection whose hello is awaited, one more (at most
// maxHellos). Close ends them and waits. There is one lock, Mux.mu, which is held over neither network
// nor another lock.
package mux
