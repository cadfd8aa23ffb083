// Package data has the HTTP operations on znodes: reading and changing them and their
// ACLs, transactions, sync; and those on sessions and watches. Locks and other recipes are
// in package coordination.
//
// A session's stream has a goroutine that waits for the session's end; it ends with the
// stream. Everything else runs on the request's goroutine.
package data
