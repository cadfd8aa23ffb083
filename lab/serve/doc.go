// Package serve answers the requests of the lab's page (package page) over HTTP: it serves the
// page's files and runs the simulator for it, in this process. It has no state: a run is
// computed again for each request, a few runs at a time.
//
// The page is for people on the machine that it runs on. Requests that name another
// host, or come from a page of another origin, are refused (DNS rebinding), and so are
// those that are too big. The limits of a run are package page's.
//
// Serve owns the goroutines that net/http starts for connections; none is left when it
// returns.
package serve
