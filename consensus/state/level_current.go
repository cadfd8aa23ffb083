//go:build !nextrelease

package state

// MaxLevel is the level of this release.
const MaxLevel Level = 2
