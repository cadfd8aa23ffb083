//go:build !linux

package doctor

// machine knows of Linux alone.
func (*doctor) machine() {}

func unsafeFileSystem(string) string { return "" }
