package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

const lockPath = "/fenced/lock"

// unfenced is a resource that takes every token for the newest.
type unfenced struct{ *Store }

func (u unfenced) Read(_ int64, name string) (int, error) { return u.Store.Read(0, name) }

func (u unfenced) Write(_ int64, name string, value int) error {
	return u.Store.Write(0, name, value)
}

func TestStore_Write_RefusesOlderTokens(t *testing.T) {
	s := NewStore()
	for _, step := range []struct {
		token int64
		err   error
	}{{5, nil}, {5, nil}, {4, ErrStale}, {9, nil}, {8, ErrStale}, {5, ErrStale}, {9, nil}} {
		if err := s.Write(step.token, "n", int(step.token)); !errors.Is(err, step.err) {
			t.Errorf("writing with token %d: %v, want %v", step.token, err, step.err)
		}
	}
	if s.Value("n") != 9 || s.Refused() != 3 {
		t.Errorf("the value is %d after %d refusals, want 9 and 3", s.Value("n"), s.Refused())
	}
}

// If reading did not raise the fence, an earlier holder could write between a
// later one's reading and writing, and its write would be lost.
func TestStore_Read_RaisesTheFence(t *testing.T) {
	s := NewStore()
	if _, err := s.Read(2, "n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(1, "n", 1); !errors.Is(err, ErrStale) {
		t.Errorf("a write with token 1 after a read with token 2: %v, want %v", err, ErrStale)
	}
}

// pausedHolder has one holder read and then hang, its connection blocked, until its
// session has expired and another holder has added; then it writes. It returns what
// the write of the paused one ended with.
func pausedHolder(t *testing.T, r Resource) error {
	ctx := testserver.Context(t)
	e := testserver.Start(t, 1)
	sleepy, lively := e.Process(t), e.Process(t)
	paused := NewHolder(sleepy.Client, lockPath, r)
	session := sleepy.Client.Session()
	paused.Think = func(ctx context.Context) {
		sleepy.Proxy.Block()
		defer sleepy.Proxy.Unblock()
		// Adding waits for the lock, and so until the servers have given up the
		// session of the paused one.
		if sum, err := NewHolder(lively.Client, lockPath, r).Add(ctx, "n"); err != nil || sum != 1 {
			t.Errorf("the other holder: sum %d, %v; want 1", sum, err)
		}
		if session.Err() == nil {
			t.Error("another one had the lock, and the client of the paused one " +
				"did not know that it may")
		}
	}
	_, err := paused.Add(ctx, "n")
	return err
}

func TestHolder_Add_PausedHolderIsRefused(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	store := NewStore()
	if err := pausedHolder(t, store); !errors.Is(err, ErrStale) {
		t.Errorf("the paused holder: %v, want %v", err, ErrStale)
	}
	if store.Value("n") != 1 || store.Refused() != 1 {
		t.Errorf("the value is %d after %d refusals, want 1 and 1",
			store.Value("n"), store.Refused())
	}
}

// The same without fencing: two additions happen, and the sum is one. If this
// fails, the test above has become one that cannot.
func TestHolder_Add_WithoutFencingAnAdditionIsLost(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	store := NewStore()
	if err := pausedHolder(t, unfenced{store}); err != nil {
		t.Fatalf("nobody refuses, and yet: %v", err)
	}
	if store.Value("n") != 1 {
		t.Errorf("the sum is %d; without fencing it was to be wrong", store.Value("n"))
	}
}

// Holders add while their connections are cut and blocked at random and servers stop. The sum
// must be that of the acknowledged additions.
func TestHolder_Add_SumIsExactUnderFaults(t *testing.T) {
	tier.Seconds(t)
	t.Parallel() // it mostly waits for sessions to expire
	const holders, additions = 3, 10
	ctx := testserver.Context(t)
	seeds := testserver.Rand(t)
	e := testserver.Start(t, 3)
	store := NewStore()
	var all sync.WaitGroup
	for range holders {
		p := e.Process(t)
		rnd := rand.New(rand.NewPCG(seeds.Uint64(), 0))
		all.Go(func() {
			h := NewHolder(p.Client, lockPath, store)
			h.Think = func(context.Context) {
				if rnd.IntN(4) == 0 {
					p.Proxy.Cut()
				}
			}
			for n := 0; n < additions; {
				switch _, err := h.Add(ctx, "n"); {
				case err == nil:
					n++
				case !errors.Is(err, ErrStale):
					t.Errorf("adding: %v", err)
					return
				}
			}
		})
	}
	wait.Until(t, "some have been added", func() bool { return store.Value("n") > 5 })
	i := seeds.IntN(3)
	e.Stop(i)
	e.Restart(i)
	all.Wait()
	if got := store.Value("n"); got != holders*additions {
		t.Errorf("the sum is %d, want %d", got, holders*additions)
	}
}
