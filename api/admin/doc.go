// Package admin has the HTTP operations for those who operate an ensemble: its members,
// draining, backups, ZooKeeper's AdminServer commands, metrics, health, and the documents
// about the API itself. It reads and changes no znodes.
//
// It starts no goroutine.
package admin
