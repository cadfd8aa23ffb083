// Package recipes has the coordination patterns that programs build on a
// ZooKeeper ensemble: election, mutex, read/write lock, semaphore, barriers,
// queues, counter, group membership, service registry and configuration. It is
// built on package client alone, and so runs against Apache ZooKeeper (3.6 and
// newer) and zk-lite. It keeps no connection of its own and decides nothing about
// sessions: those are the client's.
//
// Znode layouts and names are those of Apache Curator where it has the recipe, so
// that programs in Java and Go compete for the same lock; the page of each type
// says which. Locks and elections also see the znodes of kazoo.
//
//	election := recipes.NewElection(c, "/app/master", recipes.WithData(address))
//	term, err := election.Campaign(ctx) // waits
//	...
//	work, cancel := term.Context(ctx) // ends when leadership does
//	defer cancel()
//	err = store.Write(work, term.FencingToken(), data) // refuses tokens that are too old
//	...
//	err = term.Resign(ctx)
//
// # Grants and fencing
//
// What a lock, a semaphore or an election gives is a Grant. Nobody else gets the
// same while the session that owns its znode lives, and the client learns of the
// end of its session no later than the servers do. What no lock service can
// prevent is that a process is stopped (or a message of it delayed) for longer than
// the session timeout and goes on, for a moment, as if nothing had happened.
// Grant.FencingToken is for that: a number that grows from holder to holder, by which the
// resource that is protected refuses the one who comes late.
//
// # Lost connections, lost sessions
//
// A connection that breaks is no loss: grants stay, waiters keep their place, and
// writes whose answer was lost are looked for before they are repeated. With
// WithLossOnSuspension a grant ends with the connection instead. When a session is
// lost, all its grants are (Grant.Done, Grant.Err); whoever was waiting queues anew
// in the client's next session, without an error.
//
// Every method that takes a context returns when it ends. What it has begun to
// wait for is then given up: its znode is deleted in the background, at the latest
// with the session.
//
// # Cost
//
// A waiter watches one znode, that of the one before it, so a release wakes one
// waiter whatever the length of the line. Lists are read without a watch. Whoever
// joins a line reads its names, so a line is meant for thousands and not for
// millions. Queues read the names of their items, too: ZooKeeper is no message
// broker, and one item in hundreds is worth more here than a million.
//
// # Concurrency
//
// All types are safe for concurrent use. Goroutines run behind three of them: one
// for each Grant, from the grant to its release or loss; one for each Membership,
// until Leave; and one for each Value, until Close. Apart from these, a znode that
// is to be deleted after its context has ended has one that ends with the deletion
// or the session. All end when the client is closed. Nothing calls back: whatever
// there is to be told comes from channels and iterators, whose consumer may use the
// same client.
package recipes
