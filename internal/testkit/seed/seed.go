// Package seed gives a test the seed of its random choices. Without ZK_LITE_SEED it is always the same, so that no
// change fails a test that it would have passed in another run; `make explore` sets the variable, and searches. It
// starts no goroutine.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that holds another seed, a decimal number.
const Variable = "ZK_LITE_SEED"

// Default is the seed of a run without Variable.
const Default = 1

// Of returns the test's seed and logs how to repeat the run. It ends the test if Variable is not a number.
func Of(tb testing.TB) uint64 {
	tb.Helper()
	seed := uint64(Default)
	if text := os.Getenv(Variable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatalf("%s is %q; want a number from 0 to 2^64-1", Variable, text)
		}
	}
	tb.Logf("%s=%d repeats the random choices of %s", Variable, seed, tb.Name())
	return seed
}

// Rand returns a source of random numbers with the test's seed. It is not safe for concurrent use.
func Rand(tb testing.TB) *rand.Rand {
	tb.Helper()
	return rand.New(rand.NewPCG(Of(tb), 0))
}
