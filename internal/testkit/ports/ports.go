// Package ports gives TCP ports of 127.0.0.1 to the servers that tests and benchmarks start, so that
// no two of them, in any process, get the same one, and none is lost while its server is down.
//
// It is for addresses that must be known before the server starts, or that it must have again after
// a restart. A test that can listen on port 0 and ask for the port does not need it.
//
// Ports come in blocks. The first of a block is never given away: a listener on it, which the
// operating system ends with the process, marks the block as taken. All are below the ranges
// from which systems take the ports of outgoing connections.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// blockSize is how many ports a block has, with its first.
const blockSize = 32

// span is a number of blocks.
type span struct{ first, blocks int }

// all is the range of the ports: 11000 to 31991.
var all = span{first: 11000, blocks: 656}

// ErrNone reports that there are not as many free ports.
var ErrNone = errors.New("no free ports")

// Reservation is a number of ports that no one else has.
type Reservation struct {
	Ports []int // those asked for

	once   sync.Once
	guards []net.Listener
}

// Reserve returns n ports without a listener. Errors: ErrNone.
func Reserve(n int) (*Reservation, error) { return all.reserve(n) }

func (s span) reserve(n int) (*Reservation, error) {
	r := new(Reservation)
	for i, start := 0, rand.IntN(s.blocks); i < s.blocks && len(r.Ports) < n; i++ {
		base := s.first + (start+i)%s.blocks*blockSize
		guard, err := listen(base)
		if err != nil {
			continue
		}
		r.guards = append(r.guards, guard)
		for port := base + 1; port < base+blockSize && len(r.Ports) < n; port++ {
			if l, err := listen(port); err == nil { // not one of a program that knows nothing of blocks
				l.Close()
				r.Ports = append(r.Ports, port)
			}
		}
	}
	if len(r.Ports) < n {
		r.Release()
		return nil, fmt.Errorf("%w: %d are wanted from %d on", ErrNone, n, s.first)
	}
	return r, nil
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

// Release gives the ports back, when their servers have ended for good. Calling it again is harmless.
func (r *Reservation) Release() {
	r.once.Do(func() {
		for _, l := range r.guards {
			l.Close()
		}
	})
}

// TB is the part of testing.TB that Take needs.
type TB interface {
	Helper()
	Cleanup(f func())
	Fatal(args ...any)
}

// Take returns n ports that belong to the test until it ends, and until the cleanups that it
// registers later, such as the end of its servers, are done.
func Take(tb TB, n int) []int {
	tb.Helper()
	r, err := Reserve(n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Release)
	return r.Ports
}
