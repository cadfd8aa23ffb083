// Package lineedit reads lines for a shell: from a terminal, with editing,
// history and completion, or from a pipe. It splits lines into words as shells
// do. It does not depend on commands or servers.
//
// # Concurrency
//
// ReadLine is called by one goroutine at a time. Notify and SetPrompt may be
// called by others at the same time. The package starts no goroutine.
package lineedit
