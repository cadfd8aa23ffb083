//go:build slow

package table

import "testing"

// TestMake_Large_FormulasHold takes two minutes.
func TestMake_Large_FormulasHold(t *testing.T) { assertHolds(t, append(sizesFrom(25, 64), 100, MaxN)) }
