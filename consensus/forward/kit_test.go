package forward

import (
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

func create(path string) *state.Command {
	return &state.Command{Op: state.OpCreate, Path: path, Data: []byte("x"), ACL: znode.OpenACL}
}

// discard is an Observer that does nothing.
type discard struct{}

func (discard) Event(*znode.Event)                               {}
func (discard) SessionOpened(*session.Session)                   {}
func (discard) SessionAttached(*session.Session, state.ServerID) {}
func (discard) SessionClosed(znode.SessionID, bool)              {}
func (discard) QuotaExceeded(string)                             {}
func (discard) Result(state.Origin, uint64, *state.Result)       {}
func (discard) Gap(state.Origin, uint64)                         {}
