// Command broker is a message broker after the Yahoo! Message Broker of the ZooKeeper
// paper (Hunt et al., USENIX ATC 2010, section 4): topics, each on two nodes, its primary
// and its backup. A message is acknowledged when both have it on their disks. If one dies
// the other goes on and copies everything to a third: nothing is lost. README.md shows it.
//
// The znodes below /examples/broker:
//
//	nodes/ID                       ephemeral: a node, with its address, load and topics
//	topics/TOPIC                   the pair of nodes that have every acknowledged message
//	topics/TOPIC/primary, backup   ephemeral: the two, while they live
//	topics/TOPIC/subscribers/NAME  the id of the last message that a subscriber has processed
//	migration_prohibited           while it is there no topic changes its nodes
//	shutdown                       when it is there all nodes end
//
// # Why nothing is lost
//
// Only a node of the pair may become the primary, and a node is written into the pair
// when it has a copy of everything. Every change of the pair gives the topic's znode a
// new version, the epoch. A node refuses copies of a lower epoch than it knows of, so one
// that was primary and does not know of its end (it was paused, or is cut off from the
// ensemble) cannot acknowledge anything: its backup has replaced it. This needs no clock.
// A message that only the primary has is not shown to subscribers: it may be lost.
//
// If both nodes of a pair die the topic waits for one of them to come back, with its
// directory.
//
// # Why nothing comes twice
//
// A publisher numbers its messages, and what is sent again is recognized, also by the
// next primary: the number is in the log. A message's id is its place in the log, the
// same on all nodes, so a subscriber that keeps the last id goes on behind it.
//
// # Concurrency
//
// Node.Run has a goroutine that serves HTTP, and looks at the topics in that of its caller;
// both have ended when it returns. All methods of Customer are safe for concurrent use.
package main
