package consensus

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// What a server accepts has to pass the log: a leader could not store the entry of a command of more than a segment,
// stepped down, and got the same command again.
func TestRegression_Log_KeepsTheLargestCommand(t *testing.T) {
	log, err := raftlog.Open(t.TempDir(), raftlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := &state.Command{Op: state.OpCreate, Path: "/x", ACL: znode.OpenACL}
	c.Data = make([]byte, state.MaxCommand-c.MaxSize())
	entry := state.AppendEntry(nil, 1, []state.Batch{{
		Origin: state.Origin{Server: 1, Incarnation: 1}, First: 1, Count: 1, Commands: state.AppendCommand(nil, c),
	}})
	if err := log.StoreLog(&raft.Log{Index: 1, Term: 1, Data: entry}); err != nil {
		t.Error(err)
	}
}
