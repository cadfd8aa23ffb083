// Package ensemble performs the lab's scenarios on a running ensemble, with the recipes that
// applications use, to check the simulator's results on real servers. It only measures; package
// election judges the outcome.
//
// Events and requests are counted on the wire, between client and server, so that neither's own
// counts have to be trusted.
//
// # Concurrency
//
// Every candidate has a session and a goroutine of its own. A tap is shared by the goroutines
// of its client, which write and read, and the runner, which reads it; its mutex protects all.
// No goroutine is left when KillLeader or Trace returns. A recorder is shared by all taps of a
// run, and has a mutex of its own.
package ensemble
