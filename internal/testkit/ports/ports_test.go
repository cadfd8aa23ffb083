package ports

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

// few is a span of these tests' own: a test that takes all ports must not starve others.
var few = span{first: 10000, blocks: 4}

// TestReserve_NoPortTwice: many at once, and none is given twice, although no server listens.
func TestReserve_NoPortTwice(t *testing.T) {
	var mu sync.Mutex
	owner := map[int]int{}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			r, err := Reserve(1 + 3*i)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(r.Release)
			if len(r.Ports) != 1+3*i {
				t.Errorf("%d ports, want %d", len(r.Ports), 1+3*i)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range r.Ports {
				if other, taken := owner[p]; taken {
					t.Errorf("%d and %d both have port %d", i, other, p)
				}
				owner[p] = i
			}
		})
	}
	wg.Wait()
}

// TestReserve_LeavesOutWhatIsInUse: a program that knows of no blocks listens in the middle of
// one.
func TestReserve_LeavesOutWhatIsInUse(t *testing.T) {
	mine, err := few.reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	foreign := mine.Ports[0]
	mine.Release()
	l, err := listen(foreign)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := few.reserve(few.blocks*(blockSize-1) - 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if slices.Contains(r.Ports, foreign) {
		t.Errorf("port %d is in use, and was given away", foreign)
	}
}

func TestReserve_MoreThanThereAre_Fails(t *testing.T) {
	if _, err := few.reserve(few.blocks * blockSize); !errors.Is(err, ErrNone) {
		t.Errorf("%v, want %v", err, ErrNone)
	}
	r, err := few.reserve(1) // and its ports are free again
	if err != nil {
		t.Fatal(err)
	}
	r.Release()
	r.Release()
}
