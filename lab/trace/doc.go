// Package trace turns the records of a run into the input of a player that draws it: the steps
// in order, the messages with the times of their sending and arrival, the variables and timers
// of each process after each step, the spans in which a process is down, leads, asks or is
// inside, counts, formulas, and the broken promises with their moments. A Trace is plain data
// and survives JSON. Package play makes one from the words of a command line; package chart
// draws pictures from the same records.
//
// It runs nothing and judges nothing.
//
// # How to play a trace
//
// Times are in units (numbers, not strings). Steps are in the order in which they happened;
// their times never decrease, and several may share one. To show the run after k steps, begin
// with every process up, without variables and timers, and apply Steps[0] to Steps[k-1]:
//
//   - Changes: the variables of Step.Process that have new values. The first step of a
//     process has all of them, so the order there is the order to show them in.
//   - Timers: those that were set, with the time at which they run out, or, without one,
//     that are no longer set. A crash removes all of them, and lists them here.
//   - Status: the new status of the process, in a word: LEADS, INSIDE, asks, down, the leader
//     that it holds, or "-". Empty means unchanged.
//   - Facts: the facts that the step established, as sentences.
//   - Sends: the messages that it sent, as places in Messages.
//   - Sent: how many messages have been sent up to here, all types; count Sends by
//     Message.Type for one type. Counts of the result may end earlier, at CountedUntil,
//     for algorithms that never fall silent.
//
// Trace.At does this in Go, for callers in the same process.
//
// A message is under way from Message.Sent until Message.Ends. It arrived if Received is given;
// otherwise Lost is the reason, and Ends is when it would have arrived. A step of kind
// delivered or lost has the message's place in Step.Message. A Copy was made by the network: no
// step sent it, and it does not count. Quiet messages and steps are upkeep (heartbeats, pings),
// which pictures leave out unless they are asked for.
//
// Message.Nth is its number among the messages of its type: the option --drop TYPE@NTH loses it
// in the next run, --late TYPE@NTH=DELAY delays it, and --duplicate TYPE@NTH repeats it.
// --crash ID@TIME and --recover ID@TIME inject faults into a process. Up to that moment the run
// stays the same, since it is deterministic.
//
// Broken has the broken promises; those with End are about the state in which the run
// ended. Bounds has the formulas for this algorithm and number of processes: each names
// the messages that it counts.
package trace
