// Package zk is the ZooKeeper listener: it speaks ZooKeeper's own client protocol
// (3.9) on a listener, so that ZooKeeper's clients and tools connect
// unmodified. It frames, decodes, encodes and prints. Package server and those below it
// decide about znodes, sessions and watches.
//
// It does not listen (Serve takes a net.Listener) and does not read configuration
// files. SASL's mechanisms come in as exchanges (server/auth). TLS is its listener's
// (internal/tlsport): the first read does the handshake.
//
// # A connection's way
//
//	listener.go   accept, within the limits
//	conn.go       first four bytes: a four-letter word → word.go, answer, close
//	handshake.go  else a ConnectRequest → Conn.OpenSession / AttachSession
//	input.go      then frames
//	conn.go       execute, submit
//	request.go    decode → Conn.Read → read.go, watches.go
//	                       Conn.Write ⋯ the log ⋯ request.Done
//	reply.go      encode; statistics, slow log, usage, audit
//	outbox.go     send, with the events of watches (conn.Notify)
//	end.go        why and how it ends
//
// # Concurrency
//
// Every connection that is not idle has one goroutine, its reader. It takes as many
// complete frames as have arrived, executes them one after the other and then
// writes what they left in the outbox with one system call. Replies and
// notifications that come from elsewhere, that is from the goroutine that
// applies the log, start a writer: a goroutine that lives until the outbox is
// empty. Reader and writers never write at the same time, and the order of the
// outbox is the order on the wire.
//
// A connection without requests for a second (busyFor) gives its goroutine and its
// buffer back and waits at the Listener's rawconn.Poller. The next bytes, the end
// of the connection and leave start another reader, except that the Poller's
// goroutine answers a ping if nothing can make it wait.
// Connections that rawconn does not know, such as those with TLS, keep theirs.
//
// A conn's outbox has the only lock that the apply goroutine takes here; under
// it nothing is called that could block. A client that does not read is cut
// off when its outbox is over Config.OutboxBytes or a write makes no progress
// for Config.WriteTimeout; its reader stops taking requests long before
// (outboxHighWater), so that only notifications and answers of queued requests
// can get there. No one else waits for it.
//
// Locks, in the order in which they may be taken: Listener.mu, then
// server's (view, Conn.mu), then outbox.mu or trees.mu, then the Poller's.
//
// A large subtree (tree.go) is found and sorted by a goroutine of its own, at most two
// at a time. trees.mu is taken under the view lock.
//
// The goroutines are started by Serve and ended by Shutdown, which waits for
// all of them.
//
// # Where it differs from ZooKeeper
//
// Going over the watches that one connection may have is answered with
// SYSTEMERROR, and a request longer than jute.maxbuffer with BADARGUMENTS: all
// clients survive these (docs/protocol.md).
// createSession sent by a client is refused like an unknown type. The
// identities of one connection are bounded (maxIdentityBytes).
package zk
