// Package table compares the measured cost of every algorithm with the formula of the lectures:
// worst, best and average case, for a list of sizes. The measured numbers come from runs of
// packages election and mutex, never from the formula.
//
// Each measures on up to four goroutines, which have ended when it returns.
package table
