// Package api is the HTTP server: the tree of znodes, its transactions, sessions and
// watches for curl, scripts, browsers and languages without a ZooKeeper client, over
// the same tree, sessions and ACLs as the ZooKeeper port (docs/http.md). It puts the
// operations of its packages together and serves them:
//
//	rest          what every operation shares: routing, parameters, bodies, problems
//	data          znodes, transactions, sessions, watches
//	coordination  locks, elections, groups, fencing tokens
//	ui            the dashboard's files
//	body          bodies that the command line reads, too
//	admin         the ensemble, backups, AdminServer's commands, metrics, health, documents
//
// It keeps no state of the ensemble: it translates requests into commands and reads
// of package server, and errors into RFC 9457 problem documents.
//
// # How to add an operation
//
// Write a handler, func(q *rest.Request) error, in the package and file of its resource:
//
//   - parameters: q.Query.Flag, Integer, Duration, Version, Zxid, ACL; q.ZnodePath for
//     the {path} of the pattern, q.Vars for the rest; q.Data for a body as it is, q.Decode
//     for JSON. Their errors name the parameter and the reason; return them as they are.
//   - reading: q.View(func(v *server.View)), quickly, and nothing else of the server's
//     state, so that the answer's Zk-Zxid is true.
//   - writing: q.Do(&state.Command{...}), which sets identities, session and key. Check
//     Result.Code. An operation of several commands must choose each by the request and
//     the earlier results, not by the state that it reads: only then does a repetition with
//     an Idempotency-Key send the same commands (see createWithParents).
//   - answering: q.Answer(status, body); an error is a *rest.Problem, or rest.Fail(code,
//     path) for one of ZooKeeper's, to which rest.Explain gives a status and a hint.
//   - waiting: q.Context ends after rest.RequestTimeout. A handler that waits longer takes
//     a place with q.EnterLong, uses the context of q.HTTP, and ends when q.Core.Long.Until
//     does.
//
// Then give it a row in its package's Routes, and an entry in admin/openapi/*.json with
// its particulars: complete adds the common parameters, headers and problems.
// TestRoutes_EqualTheDocument compares the two. A body that the command line reads, too, is
// a type of package body, and TestContract_TypesEqualTheirSchemas compares it with the
// document. The client of the tests checks every answer against the document, and the
// package's tests fail if a documented answer was never given. Last, show the operation in
// docs/http.md, whose commands TestWalk runs.
//
// # Concurrency
//
// A request, and a stream, belongs to the goroutine that net/http runs for it. A
// session's stream has one more, which waits for the session's end and ends with the
// stream. Two goroutines run from the first Serve to Shutdown: metrics.History.Record,
// which measures every ten seconds, and rest.LongRequests.Watch, which every second asks
// whether the server serves. While it does not, and when it is drained or stops, streams
// report their position and end, long polls answer with the events so far, and Shutdown
// waits for both. A client that disconnects ends its stream, long poll or place in a queue;
// other requests are answered to their end, since it may have closed its own side only, and
// read on.
//
// Locks: Server.mu (whether Serve was called, connections), rest.LongRequests.mu (their
// context; under it the server is asked whether it serves), one for each bound of what
// clients may hold (long requests, searches, bodies, keys, sessions), one for the metrics of
// each operation and for the history, and that of the snapshots, which is held while a backup
// is sent. None of these is held while another of them is taken.
//
// Promised: a stream's events are in the order of zxids, each once; an answer is sent
// after the write it speaks of was applied on this server. Not promised: any order
// between requests, those of one client included, but for what min_zxid asks for.
package api
