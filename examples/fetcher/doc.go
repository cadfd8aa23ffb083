// Command fetcher is a fetching service as search engines have it: a master
// hands out addresses, workers fetch them and store what they find.
//
// Every process is a worker, and stands by as the master. If a worker dies, what
// it was to fetch is given to others; if the master dies, another goes on where it
// was. No address is forgotten, and none has two results. The master also gives the
// workers their configuration; they write their status and health, by which clients
// find one that is healthy. README.md shows it.
//
//	go run ./cmd/zk-lite dev                                   # in one terminal
//	go run ./examples/fetcher -name a http://127.0.0.1:8080/livez   # in a second
//	go run ./examples/fetcher -name b                          # in a third
//
// Ctrl-C ends a process; kill -9 does as well, and is noticed when its session
// expires. The znodes:
//
//	/examples/fetcher/master           recipes.Election
//	/examples/fetcher/config           what the master tells the workers
//	/examples/fetcher/work/workers     recipes.Group, with the status of each
//	/examples/fetcher/work/tasks/ID    an address, and the worker it is assigned to
//	/examples/fetcher/inbox/NAME/ID    the worker's side of the same
//	/examples/fetcher/results/ID       what was found
//
// # How it keeps its promises
//
// An assignment is one transaction that also checks the znode by which the master
// has been elected: it fails if that is gone, so one who was master cannot assign
// anything, whatever it believes. A result is stored by the transaction that
// removes the task from the inbox of the worker: it fails if the task has been
// given to somebody else. So both need neither locks nor clocks.
//
// # Concurrency
//
// Master.Run uses the goroutine of its caller and starts none. Worker.Run has one that
// serves HTTP and one that reports its status; both have ended when it returns.
package main
