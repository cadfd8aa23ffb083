// Package api is the HTTP door: the tree of znodes, its transactions, sessions and
// watches for curl, scripts, browsers and languages without a ZooKeeper client, over
// the same tree, sessions and ACLs as the ZooKeeper port (docs/http.md).
//
// It keeps no state of the ensemble: it translates requests into commands and reads
// of package server, and errors into RFC 9457 problem documents.
//
// # A request's way
//
//	router → resource by method → request.run:
//	  checkOrigin   a page of another site is refused
//	  parseQuery    unknown and repeated parameters are refused
//	  parseVars     the URL's path, percent-decoded once
//	  identify      HTTP Basic is the scheme digest, the address the scheme ip
//	  readKey       Idempotency-Key
//	  settle        waits for ?consistency= and ?min_zxid=; 503 without a quorum
//	  readSession   proves Zk-Session; also a heartbeat
//	→ the operation's handler → request.answer, or an error → request.fail
//
// # How to add an operation
//
// Write a handler, func (q *request) xyz() error, in a file of its own:
//
//   - parameters: q.query.flag, integer, duration, version, zxid, acl; q.znodePath for
//     the {path} of the pattern, q.vars for the rest; q.data for a body as it is, q.decode
//     for JSON. Their errors name what is wrong; return them as they are.
//   - reading: q.look(func(v *server.View)), quickly, and nothing else of the server's
//     state, so that the answer's Zk-Zxid is true.
//   - writing: q.do(&state.Command{...}), which sets identities, session and key. Check
//     Result.Code. An operation of several commands must choose each by the request and
//     the results before, not by what it reads: only then is it repeated alike with an
//     Idempotency-Key (createWithParents; deleteAll is the exception, and says how it
//     copes).
//   - answering: q.answer(status, body); an error is a *problem, or failure{code, path}
//     for one of ZooKeeper's, which explain gives a status and a hint.
//   - waiting: q.ctx ends after requestTimeout. Who waits longer takes a place with
//     q.follow (changes) or Door.enterStream, uses the context of q.http, and ends when
//     Door.stopping does.
//
// Then give it a row in Door.routes, and an entry in openapi/*.json, in which only what
// is particular stands: complete adds the common parameters, headers and problems.
// TestRoutes_EqualTheDocument compares the two. The client of the tests checks every
// answer against the document, and the package's tests fail when a documented answer
// was never given. Last, show it in docs/http.md, whose commands TestWalk runs.
//
// # Concurrency
//
// A request, and a stream, belongs to the goroutine that net/http runs for it. A
// session's stream has one more, which waits for the session's end and is gone when
// the stream is. Shared are the Door's counters: atomic ones, and under Door.mu the
// streams by address; nothing is called under it.
//
// One goroutine, watchServing, runs from Serve to Shutdown. Every second it asks whether
// the server serves. While it does not, and when it is drained or stops, streams say how
// far they were and end, long polls answer with what they have, and Shutdown waits for
// both. A client that goes away ends its request's context, and with it everything that
// it held here.
//
// Promised: a stream's events are in the order of zxids, each once; an answer is sent
// after the write it speaks of was applied on this server. Not promised: any order
// between requests, those of one client included, but for what min_zxid asks for.
package api
