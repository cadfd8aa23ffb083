//go:build !unix

package descriptors

import "errors"

// Limit is not known here.
func Limit() (int, error) { return 0, errors.ErrUnsupported }

// Open is not known here.
func Open() (int, error) { return 0, errors.ErrUnsupported }
