// Command broker is the coordination of a message broker, after the Yahoo! Message
// Broker of the ZooKeeper paper (Hunt et al., USENIX ATC 2010, section 4): topics,
// each at one of the brokers, and an elected controller that says at which.
//
// Brokers register, so that all know who is alive. The controller writes a
// directory of topics whenever a broker or a topic comes or goes; brokers,
// publishers and subscribers follow it. If a broker dies its topics move to others;
// if the controller dies another process takes over.
//
//	go run ./cmd/zk-lite dev                        # in one terminal
//	go run ./examples/broker                        # in two or three others
//	go run ./examples/broker -subscribe news        # in one more
//	go run ./examples/broker -publish news "hello"  # and again after killing brokers
//
// Ctrl-C ends a process. The znodes:
//
//	/examples/broker/controller         recipes.Election
//	/examples/broker/registry/broker/ID recipes.Registry: the brokers alive
//	/examples/broker/directory          recipes.Config: which topic is where
//
// # One broker for a topic
//
// A topic is placed with a registration, and not only with a broker: if the broker's
// session is lost, its registration is, and with it all placements. A broker that
// has lost touch knows that before anybody else can act on it (its client expires
// the session before the servers do), and refuses messages from then on; only one
// that was stopped as a whole and wakes up can take one message too many. The
// directory carries the token of the controller that has written it; a controller
// finds out by a higher one that it is deposed.
//
// What this example does not do is to keep messages: they are in the memory of their
// broker, and what nobody has read is gone with it. The Yahoo! Message Broker has a
// second broker for each topic that holds a copy.
//
// # Concurrency
//
// Controller.Run has a goroutine that follows the registry, and Broker.Run one for
// its HTTP server; both end before Run returns. All methods of Directory and
// Customer are safe for concurrent use.
package main
