// Package drill carries out the procedures that docs/operations.md asks operators to practise, with real servers,
// and measures how long each step takes. It has tests only.
package drill
