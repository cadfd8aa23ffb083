package znode

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// mustCreate creates a znode and returns its path.
func mustCreate(tb testing.TB, t *Tree, x *Txn, r *CreateRequest) string {
	tb.Helper()
	path, _, code := t.Create(x, r)
	if code != OK {
		tb.Fatalf("create %s: %v", r.Path, code.Name())
	}
	return path
}

// newRand is a source of random numbers whose seed is printed. To repeat a
// failure set ZK_LITE_SEED.
func newRand(tb testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ZK_LITE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Logf("ZK_LITE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}
