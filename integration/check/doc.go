// Package check judges histories of zk-lite: what clients requested, what answers and events they
// got, and when. Each checker names the guarantee of docs/guarantees.md that a violation breaks.
//
// It does not run anything: a simulation or a test with real processes records a History and
// passes it on. It knows no servers, no network and no clock; all moments are durations since the
// beginning of the history. The fields that a recorder cannot fill stay empty, and the rules that
// need them are not applied; every field documents which those are.
//
// Linearizable uses porcupine (github.com/anishathalye/porcupine) with a model of a few znodes;
// everything else is decided by the zxids that the servers assign, which are the order of all
// changes, so that each rule is one pass over the history.
//
// The functions may be called from any goroutine; a History must not change meanwhile. Linearizable
// starts goroutines, which end before it returns.
package check
