//go:build !nextrelease

package membership

// nextRelease is what the next release adds to answers, in tests of upgrades.
type nextRelease struct{}

func releaseFields() nextRelease { return nextRelease{} }
