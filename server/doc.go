// Package server is one server's request path: it keeps each client's requests
// in order, answers reads from the local state, sends writes to consensus, and
// sees to it that a client learns of an event before it can see its cause.
//
// It does not know any protocol: the doors (packages api and api/zk) decode
// requests into operations (Op) and encode what those are given. It does not
// agree on anything either: package consensus does, through the interface
// Consensus.
//
// # A request's way
//
//	door decodes → Conn.Write → Consensus.Propose ⋯ log ⋯ Server.BeginApply
//	  Server.Event   → watch.Manager → Conn.Notify → the client's outbox
//	  Conn.Applied   → Op.Done       →               the client's outbox
//	  reads queued behind the write → Op.Read →      the client's outbox
//	Server.EndApply
//	door decodes → Conn.Read → (no earlier request pending) Op.Read → outbox
//
// # Concurrency
//
// One lock orders readers and the writer: the view lock. The goroutine that
// applies the log holds it alone from BeginApply to EndApply; everybody who
// looks at the state, or adds a watch, shares it. So a read, the watch it
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
// Whatever is called between BeginApply and EndApply, on a door's Client or
// Op, must not block: a slow client's outbox is bounded and the client loses
// its connection, nobody else waits.
//
// The locks, in the order in which they may be taken: view, Server.mu or the
// leadership's, Conn.mu, then what a door has of its own (an outbox) or
// watch.Manager's; Server.latelyMu, under Server.mu or alone. Nothing is called out
// to network, disk or raft under any of them.
package server
