// Command mailers answers mails with any number of processors, none of which takes
// the same mail as another, and no mail is answered twice.
//
// Incoming mails are a recipes.Queue. Taking one claims it, for as long as the
// processor's session lives: if the processor dies another gets the mail, in its
// old place. What a queue cannot promise alone is that a processor which was only
// paused does not go on with a mail that is somebody else's now. So the outbox, to
// which answers go, compares the tokens of the claims, and takes one answer for
// each mail.
//
//	go run ./cmd/zk-lite dev                             # in one terminal
//	go run ./examples/mailers                            # in another
//	go run ./examples/mailers -put "hello" "how are you" # in a third
//
// Each process has three processors, with sessions of their own; processes that
// run side by side share the mails. For the demonstration the outbox is in the
// memory of each process: it cannot refuse the answer of a processor in another.
// In earnest it is a database that all of them write to, with the token and the
// name of the mail in the row of the answer.
//
// # Concurrency
//
// Processor.Run uses the goroutine of its caller and starts none. All methods of
// Outbox are safe for concurrent use.
package main
