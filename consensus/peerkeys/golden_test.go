package peerkeys

import (
	"encoding/json"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/golden"
)

func TestGolden_Table(t *testing.T) {
	b, err := json.Marshal(&saved{savedVersion, Table{
		Index: 5, Keys: map[state.ServerID]Key{1: {1}}, Removed: map[state.ServerID]Key{2: {2}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "peers.json", append(b, '\n'))
}
