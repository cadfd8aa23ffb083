//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package raftlog

import "os"

// lockFile does nothing where there is no flock: two servers on one directory go undetected.
func lockFile(*os.File) error { return nil }
