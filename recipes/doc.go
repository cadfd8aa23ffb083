// Package recipes provides the coordination patterns that programs build on a ZooKeeper
// ensemble: election, mutex, read/write lock, semaphore, barriers, queues, counter,
// group membership, service registry, configuration and values of many megabytes. It
// uses package client alone, and so runs against Apache ZooKeeper (3.6 and newer) and
// zk-lite. It has no connection of its own and does not manage sessions: the client
// does.
//
// Znode layouts and names are those of Apache Curator where Curator has the recipe, so
// that programs in Java and Go can use the same lock; the documentation of each type
// names the recipe. Locks and elections also respect the znodes of kazoo.
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
// A lock, a semaphore or an election gives a Grant. No other client gets the same grant
// while the session that owns its znode lives, and the client learns of the end of its
// session no later than the servers do. No lock service can prevent a process from
// being paused (or one of its messages from being delayed) for longer than the session
// timeout, and then continuing, for a moment, as if it still had the grant.
// Grant.FencingToken is for that case: a number that grows from holder to holder, by
// which the protected resource refuses a holder that is too late.
//
// # Lost connections, lost sessions
//
// When a connection breaks, grants remain and waiters keep their position. If the answer
// to a write was lost, the recipe determines whether the write happened before it repeats
// it. With WithLossOnSuspension a grant ends with the connection instead. When a session
// is lost, all its grants are lost (Grant.Done, Grant.Err); waiters queue again in the
// client's next session, without an error.
//
// Every method that takes a context returns when the context ends. If it was waiting, its
// znode is deleted in the background, at the latest with the session.
//
// # Cost
//
// A waiter watches one znode, that of the one before it, so a release wakes one
// waiter whatever the length of the queue. Lists are read without a watch. A client that
// joins a queue reads all its names, so a queue can have thousands of waiters, not
// millions. Queue, PriorityQueue and DelayQueue read the names of all their items, too:
// they are for hundreds of items. ZooKeeper is no message broker.
//
// # Concurrency
//
// All types but BlobReader are safe for concurrent use. Three of them have goroutines: each Grant
// one, from the grant to its release or loss; each Membership one, until Leave; and
// each Value one, until Close. A deletion that continues after its context has ended
// has a goroutine, which ends with the deletion or the session. All end when the
// client is closed. There are no callbacks: events come from channels and iterators,
// and their consumers may use the same client.
package recipes
