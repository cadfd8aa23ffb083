// Package server is one server's request path: it keeps each client's requests
// in order, answers reads from the local state, sends writes to consensus, and
// ensures that a client gets an event before it can see what caused it.
//
// It has no protocol: the packages api and api/zk decode requests into operations
// (Op) and encode their results. It does not replicate: package consensus does,
// through the interface Consensus, and calls the server through Server.Handler.
//
// # The path of a request
//
//	listener decodes → Conn.Write → Consensus.Propose ⋯ log ⋯ handler.BeginApply
//	  handler.Event   → watch.Manager → Conn.Notify → the client's outbox
//	  Conn.Applied    → Op.Done       →               the client's outbox
//	  reads queued after the write  → Op.Read →       the client's outbox
//	handler.EndApply
//	listener decodes → Conn.Read → (no earlier request pending) Op.Read → outbox
//
// # Concurrency
//
// One lock orders readers and the writer: the view lock. The goroutine that
// applies the log holds it alone from BeginApply to EndApply; every goroutine that
// reads the state, or adds a watch, shares it. So a read, the watch it
// leaves and the reply it enqueues are one step with respect to every write,
// and an outbox gets everything in the order of zxids. The lock is split into
// shards (each reader takes one, the writer all), so that readers on several
// cores do not fight over one counter.
//
// Promised: requests of one Conn are executed and answered in the order of its
// calls, which come from one goroutine; a write is answered only after it was
// applied here; a read sees all earlier writes of its Conn and none of the
// later ones. Not promised: any order between Conns.
//
// What is called between BeginApply and EndApply, on a listener's Client or
// Op, must not block: a slow client's outbox is bounded and the client loses
// its connection, no other client waits.
//
// The server starts three kinds of goroutines: one for housekeeping (touched sessions,
// expiry) and one for the reaper, from Start to Stop, and one that proposes the command
// with which a server catches up, until it is sent.
//
// The locks, in the order in which they may be taken: view; LocalSessions.mu, ReadOnlyMode.mu; connections.mu,
// sessionEnds.mu, catchingUp.mu, or that of session.Tracker, insight.Expirations, insight.SlowLog or changes.Feed,
// of which no two are held together; Conn.mu, connections.touchedMu; then those of a listener (an
// outbox) or of watch.Manager. No call to network, disk or raft is made under any of them.
package server
