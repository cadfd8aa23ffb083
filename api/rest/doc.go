// Package rest is what all operations of the HTTP API share: routing, parameters, bodies,
// problem documents, identities, sessions, Idempotency-Keys, consistency, streams of
// events, and limits. It has no operation of its own; the packages data, coordination and
// admin have, and do not import each other.
//
// # A request's way
//
//	Core.Handler → resource by method → Request.run:
//	  checkHost           a name that leads here from another site is refused
//	  checkOrigin         a page of another site is refused
//	  parseQuery          unknown and repeated parameters are refused
//	  passOn              ?server=N: another server answers
//	  parseVars           the URL's path, percent-decoded once
//	  identify            HTTP Basic is the scheme digest, the address the scheme ip
//	  readKey             Idempotency-Key
//	  waitForConsistency  waits for ?consistency= and ?min_zxid=; 503 without a quorum
//	  readSession         proves Zk-Session; also keeps the session alive
//	→ the operation's handler → Request.Answer, or an error → Request.fail
//
// A Request belongs to the goroutine that net/http runs for it. LongRequests.Watch is run
// by package api, in a goroutine of its own.
package rest
