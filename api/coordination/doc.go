// Package coordination has the HTTP operations on locks, elections, groups and fencing
// tokens. A lock and an election are queues (type Queue) of ephemeral sequential znodes
// with the names of Curator's recipes, so that its clients, and kazoo's, are in the same
// queue; the names are internal/curator's. It keeps nothing between two requests.
//
// Everything runs on the request's goroutine.
package coordination
