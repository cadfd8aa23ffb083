// Package labcli is the command line of the lab: the commands election, mutex,
// detector, table and scenario under "lab". It turns flags into the
// configurations of the other packages and results into text, JSON and pictures;
// it simulates nothing itself.
//
// It is a package of its own, and not part of the program, so that the examples
// of lab/testdata are run and compared by its tests.
package labcli
