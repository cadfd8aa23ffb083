// Package compare measures zk-lite side by side with other systems, three servers each: the suites servers, http and
// clients of the program bench.
//
// A round starts new servers of each system, in another order every round, warms it up (Java compiles the code that
// runs often), runs all rows on it, and stops it; so no system measures the clean-up of another. A row that fails,
// also because a system has left a request without an answer, is repeated on fresh servers, three times at most,
// and the document says so. The document is written again after every system of a round, so an interrupt leaves the
// results so far.
//
// # Concurrency
//
// One thing is measured at a time, by the caller's goroutine.
package compare
