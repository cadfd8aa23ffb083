// Package growth measures how the cost of zk-lite grows: with connections, requests in
// flight, the size of a value, of the tree, of one znode's children, with watches, with
// servers; how long a restart takes with a large tree, how long a server needs to catch
// up from a snapshot under load, for how long a snapshot delays a write, and how late
// followers of the change feed get a change. It writes
// tables, and for each curve the point where it bends, and the plots beside them. It
// is the suite growth of the program bench.
//
// A curve is a file with the same name. All measure one ensemble at a time; unless stated
// otherwise three servers with their defaults.
//
// # Concurrency
//
// One thing is measured at a time, by the caller's goroutine; only while servers are
// restarted does the load have a goroutine, which ends before the measurement does.
package growth
