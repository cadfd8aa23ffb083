// Package znode is the data model: paths, Stats, ACLs, error codes, and the
// tree of znodes with the rules for changing it.
//
// The tree is a single-writer structure that decides nothing by itself: time,
// identity and transaction ids are arguments, and the primitives that edit it
// emit events. It uses no clock, no randomness, no network, no logger and holds
// no lock; the owner of a Tree orders the calls (package server does, with one
// writer and many readers).
//
// Of a session it knows only the id, as the owner of ephemeral znodes. It does
// not replicate anything, and does not deliver events.
package znode
