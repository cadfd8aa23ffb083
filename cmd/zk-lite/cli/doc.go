// Package cli is the part of the command line that talks to servers: the
// commands that read and write znodes, those that coordinate processes, status,
// and the shell that offers most of them. It has what they share: the flags for
// the connection, connecting, output as text or JSON, exit codes, and errors
// that say what to do next.
//
// Every command is in a file of its own. Code that needs no cobra is in the packages
// below. The package runs no servers.
//
// # Concurrency
//
// A command runs on one goroutine. Beside it runs, while it has a connection,
// one that ends the command's context when no server has been reached for
// --timeout; withClient waits for it. The shell has one more, which shows
// changes of the connection's state, and one for each watch that has not
// fired; they end with the shell.
package cli
