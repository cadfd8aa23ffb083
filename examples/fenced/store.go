package main

import (
	"errors"
	"fmt"
	"sync"
)

// ErrStale reports that the store has seen a newer token: the caller no longer
// holds the lock, and may not know it yet.
var ErrStale = errors.New("the fencing token is stale")

// Store is a resource that a lock protects: numbers by name. All methods are safe
// for concurrent use.
//
// A store that outlives its process must keep the highest token with its data.
type Store struct {
	mu      sync.Mutex // protects the fields below
	highest int64
	values  map[string]int
	refused int
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{values: map[string]int{}} }

// Read returns a value to the holder of a lock. It raises the fence as Write does,
// so that no earlier holder can change the value after this.
//
// Errors: ErrStale.
func (s *Store) Read(token int64, name string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.passLocked(token); err != nil {
		return 0, fmt.Errorf("reading %s: %w", name, err)
	}
	return s.values[name], nil
}

// Write replaces a value for the holder of a lock.
//
// Errors: ErrStale.
func (s *Store) Write(token int64, name string, value int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.passLocked(token); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	s.values[name] = value
	return nil
}

// passLocked accepts a token that is at least the highest so far. Equal tokens
// are from one holder, which may use the store repeatedly.
func (s *Store) passLocked(token int64) error {
	if token < s.highest {
		s.refused++
		return fmt.Errorf("%w: %#x after %#x", ErrStale, token, s.highest)
	}
	s.highest = token
	return nil
}

// Value returns a value without a lock.
func (s *Store) Value(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[name]
}

// Refused is how often a stale token was refused.
func (s *Store) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}
