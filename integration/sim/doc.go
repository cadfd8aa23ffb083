// Package sim runs whole ensembles in virtual time: three or five servers in one process, inside a
// testing/synctest bubble, under faults that a seed chooses, with clients whose histories package
// integration/check then judges. A minute of the ensemble's time passes in about a second.
//
// It is tests only; `go test` runs some seeds, `make sim SEEDS=1000` many. A seed that fails is
// printed with the command that runs it again.
//
// # What is real
//
// The consensus node with hashicorp/raft and the peer transport, raft's log in package raftlog, the
// state machine, sessions, watches, feeds and the request path of package server. Clients use what the
// listeners use: server.Conn, and of feeds the record of changes and its streams.
//
// # What is simulated
//
//   - The network is in memory (net_test.go): connections that keep bytes in order, as TCP does, with
//     delays, so that a loss is a stall or a reset, and only clients that retry duplicate
//     anything. Links can be cut one way or both. A killed process's connections end and its port
//     refuses; a host that vanishes sends nothing.
//   - The log's disk is raftlog/faultfs: unsynced data are lost with the power, page by page; a
//     killed process leaves what it has written.
//   - Term, vote, identity and snapshots are kept in memory (disk_test.go) instead of in bbolt and
//     files, because bbolt maps its file and locks it by system calls, and real input and output
//     does not count as waiting in a bubble: the clock could not advance meanwhile. Each write is
//     durable when it returns.
//   - The listeners, their sockets and their encodings are left out: their reads from the network would
//     have to be in memory too. Other tests have them. The comparison of setWatches is made here in
//     the listener's place (again_test.go).
//
// # What cannot be modelled
//
//   - A pause stops a server's network, disk and the application of the log, and its clients'
//     requests, but not its timers and what is under way in memory: a bubble has one clock.
//   - Data races and the scheduler's own delays: a goroutine that can run does so in no time. Most
//     seeds have one thread (threads), so that a goroutine is interrupted where it waits.
//   - Mutexes: a goroutine that waits for one counts as running, so nothing may wait for time, network or disk
//     while it holds one. That is a rule of the product as well.
//
// # What a seed reproduces
//
// The schedule of faults and the clients' choices come from the seed, and so do raft's timeouts
// and all random bytes. The order in which goroutines that are ready at the same moment run does
// not: Go's scheduler and select decide by chance. A client's requests depend on the answers
// before. So a seed reproduces the same faults at the same moments, with another interleaving;
// -sim.repeat runs it several times.
//
// # Processes
//
// Random bytes and the number of threads belong to a process, so a process runs one seed at a time.
// TestSim starts copies of itself that take seeds from it and return their results (run_test.go),
// and reports the seed of one that dies.
package sim
