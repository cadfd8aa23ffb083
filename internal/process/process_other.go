//go:build !unix

package process

// Now returns what the process uses now, as far as it is known on this system.
func Now() Usage { return Usage{Started: started} }
