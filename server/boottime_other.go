//go:build !linux

package server

import "time"

// sinceBoot is not known here; the monotonic clock is left.
func sinceBoot() time.Duration { return 0 }
