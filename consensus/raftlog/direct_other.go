//go:build !linux || !(amd64 || arm64)

package raftlog

import "errors"

// OpenDirect implements FS.
func (osFS) OpenDirect(string) (DirectFile, error) { return nil, errors.ErrUnsupported }
