package rest

import "sync"

// places bounds how many requests of a kind are in progress, in all and of each address.
type places struct {
	all, perAddress int

	mu        sync.Mutex     // protects the fields below
	byAddress map[string]int // never 0
	taken     int            // their sum
}

func newPlaces(all, perAddress int) places {
	return places{all: all, perAddress: perAddress, byAddress: map[string]int{}}
}

// enter takes a place for an address; what is what the place is for.
func (p *places) enter(address, what string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const seconds = 10
	switch n := p.byAddress[address]; {
	case n >= p.perAddress:
		return nil, TooMany(seconds, "%s has %d %s", address, n, what)
	case p.taken >= p.all:
		return nil, TooMany(seconds, "this server has %d %s", p.taken, what)
	}
	p.taken++
	p.byAddress[address]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.byAddress[address]--; p.byAddress[address] == 0 {
			delete(p.byAddress, address)
		}
	}, nil
}

// open returns how many places are taken, from how many addresses.
func (p *places) open() (open, addresses int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, len(p.byAddress)
}

// EnterSearch takes a place for a request that looks at much of the tree.
func (q *Request) EnterSearch() (leave func(), err error) {
	return q.Core.searches.enter(q.Address, "searches in progress")
}
