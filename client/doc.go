// Package client is a client for the ZooKeeper protocol: sessions, operations,
// watches, and a cache of a subtree. It works with Apache ZooKeeper 3.5 and
// newer and with zk-lite. Locks, elections and other recipes are in package recipes.
//
//	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
//	defer cancel()
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
// A write whose answer is lost, because the connection broke or the context ended
// after it was sent, fails with ErrOutcomeUnknown; any other error of a write
// means that it did not happen. A read whose answer is lost is sent again, by the
// synchronous form only. CreateProtected determines whether its create happened.
//
// # Sessions
//
// While there is no connection, operations wait until their context ends; the state is
// StateSuspended. The client tries the servers in turn, beginning with the last one that
// worked, looks their names up in every round, and waits longer after each round. A
// session is lost (StateExpired) when a server reports it, or when 15/16 of the session
// timeout have passed since the client sent the last request that was answered: the
// ensemble may expire the session soon. The sixteenth allows for late timers and
// drifting clocks. From then on the session's ephemerals count as deleted, and the
// client does not use the session again even if the servers still have it: it asks them
// to close it and opens a new one. Waiting operations fail with ErrSessionExpired. With
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
// A Watch is a channel of events. Cancel watches that you no longer need.
//
// # Concurrency
//
// A client has one goroutine that connects, and per connection one that writes and one
// that reads. The next connection starts when both have ended. Callers encode their
// operations into one buffer; the writer sends all that has gathered in one system call.
// A caller that finds the connection idle writes its request itself. It does not wait for
// room in the socket: the writer sends the rest. One goroutine at a time writes
// (link.writing). On TLS, and on connections of a dialer that are not sockets, only the
// writer writes. Only the reader decodes, completes operations and fills the channels of
// watches. It never waits for the application: a full channel ends its watch, and
// completing an operation closes a channel. One mutex, Client.mu, protects the queue, the
// watches and the session's state; the client calls nothing that can block while holding
// it. Close stops all goroutines, including those of caches, and waits for them.
//
// # Limits
//
// Not supported: SASL, read-only servers, and changing the list of servers of a running
// client.
//
// # Versions
//
// Semantic versioning covers the packages client, recipes and zklitetest, and the layout
// of the znodes of recipes. The module's other packages can change in every release.
package client
