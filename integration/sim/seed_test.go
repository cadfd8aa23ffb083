package sim

import (
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand"
	"testing"
	"testing/cryptotest"
)

// What hashicorp/raft takes its timeouts from, and what the servers take passwords and ids from, must
// repeat itself with the seed. The first needs the directive at the top of sim_test.go.
func TestSeed_DecidesAllRandomness(t *testing.T) {
	draw := func(seed uint64) (text string) {
		t.Run("draw", func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, seed)
			mathrand.Seed(int64(seed)) //nolint:staticcheck // as in simulate
			b := make([]byte, 8)
			if _, err := rand.Read(b); err != nil {
				t.Fatal(err)
			}
			text = hex.EncodeToString(b) + hex.EncodeToString([]byte{byte(mathrand.Int63()), byte(mathrand.Int63())})
		})
		return text
	}
	first, again, other := draw(1), draw(1), draw(2)
	if first != again || first == other {
		t.Errorf("seed 1 gave %s and %s, seed 2 %s", first, again, other)
	}
}
