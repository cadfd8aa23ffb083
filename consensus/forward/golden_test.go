package forward

import (
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/golden"
	"github.com/zk-lite/zk-lite/znode"
)

func TestGolden(t *testing.T) {
	c := state.Command{Op: state.OpSync}
	batch := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 7}, First: 3, Count: 1}
	golden.Check(t, "frames.bin", slices.Concat(
		appendOpen(nil, 7, 1<<30),
		finishBatch(state.AppendCommand(appendBatchHeader(nil), &c), &batch),
		appendTouch(nil, 9, []znode.SessionID{1, 2}),
		appendContact(nil, 9, 1<<30, true),
	))
}
