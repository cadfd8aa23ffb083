// Package load puts load on servers that speak the ZooKeeper protocol and measures the answers:
// a mix of operations in a closed or an open loop (Run), watchers of one znode (Watch),
// sessions opened and closed (Sessions, Churn), the pause while something kills a server (Failover),
// sessions that are idle (Idle) and a tree of a given size (Fill). RunCallers measures any
// other service with the same mixes, keys and clock.
//
// It speaks the protocol on raw connections with package internal/wire, not with package
// client, so that on a machine that it shares with the servers the generator costs as little as
// possible: one goroutine per connection, one write for everything that is due, one look at the
// clock for all replies that arrived together, and a reply's body is not decoded.
//
// In a closed loop a connection sends the next request when a reply has made room for it, so a
// slow server is asked less often. In an open loop requests have intended times at a fixed
// rate, no matter what the server does, and latency counts from the intended time: a request
// that waits behind a stall counts as waiting (leaving that out is called "coordinated
// omission").
//
// It renders nothing (package bench/report does) and starts no servers
// (bench/compare does).
//
// # Concurrency
//
// A closed loop has one goroutine per connection, which owns it. An open loop, and a closed one
// whose window holds more bytes than sockets buffer, has two: one that writes and one that
// reads, joined by the channel of sent requests. All record into a Recorder, whose counters are
// atomic. Every goroutine ends before the function that started it returns.
package load
