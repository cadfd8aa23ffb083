//go:build !unix

package process

import (
	"errors"
)

// Now returns the present usage, as far as it is known on this system.
func Now() Usage { return Usage{Started: started} }

// MaxDescriptors is not known here.
func MaxDescriptors() (int, error) { return 0, errors.ErrUnsupported }

// OpenDescriptors is not known here.
func OpenDescriptors() (int, error) { return 0, errors.ErrUnsupported }
