// Package membership is the ensemble as one of its servers sees it: how it comes to be (bootstrap.go), who is a
// member and how that is changed (members.go, leader.go), and its status (leaderstatus.go). Servers ask each other on
// control connections (control.go).
//
// A server with an empty data directory does not vote before an ensemble has been bootstrapped, once, with all
// its voters present. A server whose disk was wiped, and would forget what it has acknowledged, is refused.
//
// The package does not start raft, and reads who leads where that is published.
//
// # Goroutines and locks
//
// Serve accepts control connections, with one more goroutine for each. Start finishes a bootstrap and checks that
// the other servers are in the same ensemble, each in a goroutine that ends when it is done; one more waits until this
// server is no member any more (removal.go). RunAutopilot runs while
// this server leads (autopilot.go). What raft may never answer has a goroutine that nothing waits for.
//
// No lock is held while anything waits for disk or network: bootstrapper.accepting and leader.binding are channels with
// room for one.
package membership
