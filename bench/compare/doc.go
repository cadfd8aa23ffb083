// Package compare measures zk-lite side by side with other systems, three servers each: the suites servers, http and
// clients of the program bench.
//
// A round starts each system afresh, in another order every round, warms it up (Java compiles what is used often), runs
// all rows on it, and stops it; so no system measures the clean-up of another. A row that fails, also because a system
// has left a request without an answer, is begun again on fresh servers, three times at most, and the document tells of
// it. The document is written anew after every system of a round, so an interrupt leaves what has been measured.
//
// # Concurrency
//
// One thing is measured at a time, by the caller's goroutine.
package compare
