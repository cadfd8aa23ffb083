// Package client is a client of the ZooKeeper protocol: sessions, operations,
// watches, and a cache of a subtree. It works with Apache ZooKeeper 3.5 and
// newer and with zk-lite. Recipes such as locks and elections are built on it in
// package recipes, not here.
//
//	c, err := client.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/app")
//	...
//	defer c.Close()
//	path, stat, err := c.Create(ctx, "/config", []byte("v1"), client.Persistent)
//	data, stat, watch, err := c.GetW(ctx, "/config")
//	event := <-watch.C()
//
// # Errors
//
// Every error of an operation is an *OpError with the operation and the path.
// Ask for the reason with errors.Is: the protocol's codes (ErrNoNode,
// ErrBadVersion, ...), ErrSessionExpired, ErrClosed, a context's error.
//
// A write whose answer was lost, because the connection broke or the context
// ended after it was sent, is ErrOutcomeUnknown; any other error of a write means
// that it did not happen. Reads whose answer was lost are sent again by the
// synchronous form. CreateProtected finds out what happened.
//
// # Sessions
//
// While there is no connection, operations wait until their context ends; the
// state is StateSuspended. Servers are tried in turn, with names looked up anew
// and growing pauses, the last good server first. A session is lost
// (StateExpired) when a server says so, or when 15/16 of the session timeout have
// passed since the sending of the last request that was answered: then no server
// can have been reached, and the ensemble may soon give the session up; the
// sixteenth is for timers that fire late and clocks that drift. Ephemerals
// must be taken for gone from then on, and the session is not used again even if
// it should have survived: the client asks the servers to close it and opens a
// new one. Operations that were waiting fail with ErrSessionExpired. With
// WithFinalExpiry the client ends instead.
//
// Session.Context binds work to one session.
//
// # Asynchronous operations
//
// Client.Async has every operation in a form that returns a Pending as soon as there
// is room (WithMaxInFlight). One connection carries any number of operations at a
// time; requests are sent and answered in the order in which they were submitted,
// reads included, and complete in that order.
//
// # Watches
//
// A Watch is a channel; see there for what it promises. Cancel watches that are
// not needed any more.
//
// # Concurrency
//
// A client has one goroutine that connects, and for each connection one that
// writes and one that reads. The next connection starts when both of the last
// have ended. Operations are encoded by their callers into one buffer; the writer
// takes all that has gathered in one system call. A request that finds the
// connection idle is written by its caller, who does not wait for room in the socket:
// the writer takes over the rest. One at a time is writing (link.writing). TLS, and
// connections of a dialer that are not sockets, are left to the writer. The reader alone decodes,
// completes operations and fills the channels of watches. It never waits for the
// application: a channel that is full ends its watch, and completing an operation
// is closing a channel. One mutex, Client.mu, protects the queue, the watches and
// the session's state; nothing is called under it that can wait. Close stops all
// goroutines, including those of caches, and waits for them.
//
// # Versions
//
// Semantic versioning covers the packages client, recipes and zklitetest, and the znodes
// that recipes makes. The module's other packages can change in every release.
//
// Not supported: SASL, read-only servers, and changing the list of servers of a
// running client.
package client
