package client

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"
)

// target is one address to try. The host is that of the connect string: TLS
// checks the certificate against it.
type target struct {
	host    string
	address string // ip:port
}

// hosts yields the servers in the order in which to try them. The goroutine
// that connects owns it.
type hosts struct {
	list   []hostPort
	lookup LookupFunc
	random *rand.Rand

	preferred target // the last server that worked, "" if it went silent
}

func newHosts(list []hostPort, lookup LookupFunc, random *rand.Rand) *hosts {
	h := &hosts{list: append([]hostPort(nil), list...), lookup: lookup, random: random}
	h.random.Shuffle(len(h.list), func(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] })
	return h
}

// round yields every address once: first the server that worked last, which
// still knows the session, then the others. Names are looked up in every
// round, each when its turn comes, so that one broken name does not delay the others.
// A name that cannot be resolved yields an error instead of a target.
func (h *hosts) round(ctx context.Context, each time.Duration) iter.Seq2[target, error] {
	return func(yield func(target, error) bool) {
		first := h.preferred
		if first.address != "" && !yield(first, nil) {
			return
		}
		for i, hp := range h.list {
			addresses, err := h.resolve(ctx, hp, each)
			if err != nil && !yield(target{}, err) {
				return
			}
			for _, a := range addresses {
				t := target{host: hp.host, address: net.JoinHostPort(a, hp.port)}
				if t == first {
					continue
				}
				if !yield(t, nil) {
					// The next round starts behind this host.
					h.list = append(h.list[i+1:len(h.list):len(h.list)], h.list[:i+1]...)
					return
				}
			}
		}
	}
}

func (h *hosts) resolve(ctx context.Context, hp hostPort, d time.Duration) ([]string, error) {
	if _, err := netip.ParseAddr(hp.host); err == nil {
		return []string{hp.host}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	addresses, err := h.lookup(ctx, hp.host)
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", hp.host, err)
	}
	h.random.Shuffle(len(addresses), func(i, j int) {
		addresses[i], addresses[j] = addresses[j], addresses[i]
	})
	return addresses, nil
}

// backoff is the pause between rounds: exponential, with jitter.
type backoff struct {
	min, max time.Duration
	random   *rand.Rand
	next     time.Duration
}

func (b *backoff) reset() { b.next = 0 }

// pause returns how long to wait now, and doubles.
func (b *backoff) pause() time.Duration {
	b.next = min(max(2*b.next, b.min), b.max)
	half := b.next / 2
	return b.next - time.Duration(b.random.Int64N(int64(half)+1))
}
