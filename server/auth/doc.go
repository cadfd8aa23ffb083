// Package auth says who a client is: which identities its credentials prove, of which it needs one, and who is an
// administrator. What an identity may do with a znode is said by ACLs (znode), and what a TLS certificate is worth
// has been checked before (internal/tlsfiles).
//
// It keeps no connection and starts no goroutine. Files are read again when they have changed, by whoever asks then
// (internal/follow).
package auth
