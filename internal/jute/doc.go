// Package jute encodes and decodes the primitives of ZooKeeper's Jute format:
// booleans, 32- and 64-bit integers, buffers, strings and the counts of
// vectors, all big-endian, without tags or padding.
//
// Encoding appends to a byte slice that the caller owns. Decoding is a Reader
// over a byte slice with a sticky error: after the first failure every further
// read returns a zero value, so a record is decoded field by field and checked
// once at its end. Nothing here panics on outside bytes, and no length in them
// is trusted before it has been compared with the remaining bytes.
//
// It does not know records, frames, files or the network (package wire does),
// and it does not validate that strings are UTF-8.
package jute
