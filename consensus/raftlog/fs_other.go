//go:build !linux

package raftlog

import "os"

// datasync falls back on a full sync, which on macOS is the only one that reaches the medium.
func datasync(f *os.File) error { return f.Sync() }
