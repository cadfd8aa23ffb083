//go:build !unix

package doctor

import "errors"

func sameDisk(string, string) (bool, error) { return false, errors.ErrUnsupported }
