//go:build !unix

package zk

import "errors"

// fileDescriptors is not known here.
func fileDescriptors() (open int, limit uint64, err error) {
	return 0, 0, errors.ErrUnsupported
}
