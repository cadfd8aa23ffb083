//go:build !(linux || darwin || freebsd)

package process

import "errors"

// FreeBytes fails on this system.
func FreeBytes(string) (int64, error) {
	return 0, errors.New("the room on a disk is not known on this system")
}

// SameDisk fails on this system.
func SameDisk(string, string) (bool, error) { return false, errors.ErrUnsupported }
