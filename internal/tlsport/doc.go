// Package tlsport accepts connections that speak TLS, or TLS and plain bytes on one port. What a connection
// speaks is seen in its first byte. The handshake is done within its first Read, so on the goroutine of
// whoever reads, and under that one's deadlines: Accept never waits for a client.
//
// What handshakes compute is bounded by slots (Handshakes): thousands of clients that come at once must not
// take the processors from what else the server does. A client that is waited for has no slot.
//
// It starts no goroutine, reads no file (internal/tlsfiles does) and writes no log.
package tlsport
