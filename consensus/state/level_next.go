//go:build nextrelease

package state

// This build plays the next release in tests of upgrades: it has one operation more.

// MaxLevel is the level of the next release.
const MaxLevel Level = 3

// OpNext changes nothing, in a transaction of its own.
const OpNext Op = 255

func init() { opLevels[OpNext] = MaxLevel }
