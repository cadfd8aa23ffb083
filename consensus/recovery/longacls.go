package recovery

import (
	"io"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
)

// LongACLs returns the lists in the newest snapshot and in the log that no client could set any more, of a server that
// may run. It applies nothing, and changes nothing.
func LongACLs(files storage.Config) (found []state.LongACL, err error) {
	err = files.Inspect(func(snapshot io.Reader) error {
		there, err := state.LongACLsOf(snapshot)
		found = append(found, there...)
		return err
	}, func(l *raft.Log) error {
		if l.Type != raft.LogCommand {
			return nil
		}
		there, err := state.LongACLsIn(l.Index, l.Data)
		found = append(found, there...)
		return err
	})
	return found, err
}
