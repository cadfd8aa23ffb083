// Package drill does what docs/operations.md tells operators to practise, with real servers, and says how long each
// step takes. It has tests only.
package drill
