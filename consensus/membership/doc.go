// Package membership is the ensemble as one of its servers sees it: who is a member and how that is changed
// (members.go, leader.go), how a server proves that it may join (join.go), and the ensemble's status (status.go).
// Servers ask each other on control connections (control.go). The first start is package founding's.
//
// The package does not start raft, and reads who leads where that is published.
//
// # Goroutines and locks
//
// Serve accepts control connections, with one more goroutine for each. After Start, one waits until this server is no
// member any more (removal.go), and one follows the keys of the others (join.go). RunAutopilot runs while this server
// leads (autopilot.go). What raft may never answer has a goroutine that nothing waits for.
//
// No lock is held while anything waits for disk or network: leader.enrolling is a channel with room for one.
package membership
