package app

import (
	"testing"

	"github.com/zk-lite/zk-lite/consensus"
)

// The limits leave room for each other and for everything else; what is set counts.
func TestLimits_FollowTheMemory(t *testing.T) {
	for _, x := range []struct {
		memory, treeSet int64
		pendingSet      int
		tree            int64
		pending         int
	}{
		{0, 0, 0, 0, 0}, // unknown: no limit, and the default of package consensus
		{0, 5 << 20, 2 << 20, 5 << 20, 2 << 20},
		{32 << 20, 0, 0, 4 << 20, 2 << 20},
		{112 << 20, 0, 0, 32 << 20, 7 << 20},
		{32<<20 + 10<<30, 0, 0, 4 << 30, 64 << 20},
		{112 << 20, 64 << 20, 32 << 20, 64 << 20, 32 << 20},
	} {
		o := Options{Memory: x.memory}
		o.Settings.Consensus = consensus.Config{TreeLimit: x.treeSet, MaxPendingBytes: x.pendingSet}
		o.limitByMemory()
		if c := o.Settings.Consensus; c.TreeLimit != x.tree || c.MaxPendingBytes != x.pending {
			t.Errorf("%+v: %d for the tree, %d pending", x, c.TreeLimit, c.MaxPendingBytes)
		}
	}
}
