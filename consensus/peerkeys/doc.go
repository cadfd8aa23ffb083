// Package peerkeys is how the servers of an ensemble know each other. A server makes its key pair when it first starts
// (own.go) and shows it in TLS 1.3 (tls.go); the table says which key is whose (table.go). It knows of the keys what
// others tell it: it decides no membership, and reads nothing on a connection but TLS.
//
// Run is the one goroutine; it writes the table to disk and has connections ended whose key is not bound any more.
// There are two locks: Keys.mu, under which nothing is called, and Keys.saving, which is held during a write and taken
// first. All methods are usable on a nil *Keys, which knows nobody and stops nobody: then servers are believed.
package peerkeys
